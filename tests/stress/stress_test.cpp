// SPDX-License-Identifier: MIT

// Random problems against the reference: SAR_STRESS_SEEDS of them, from SAR_STRESS_FIRST on (by default other
// ones for each number of ranks). A problem: random graphs between one or two node types, dealt out to
// the ranks at random, and one to three random operations or layers on them, each in a random mode with
// random options, with random activations, norms and dropout in between.

#include "stress/step.hpp"
#include "support/reference.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/norms.hpp>

#include <doctest/doctest.h>

#include <mpi.h>

#include <cmath>
#include <cstdlib>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Every row less its mean, divided by sqrt(variance + eps).
Matrix standardised(const Matrix& x, double eps) {
  const auto n = static_cast<double>(x.cols());
  Matrix y(x.rows(), x.cols());
  for (Index i = 0; i < x.rows(); ++i) {
    const Number mean = test::sum(x.cols(), [&](Index j) { return x(i, j); }) / n;
    const auto centred = [&](Index j) { return x(i, j) - mean; };
    const Number var = test::sum(x.cols(), [&](Index j) { return centred(j) * centred(j); }) / n;
    for (Index j = 0; j < x.cols(); ++j) y(i, j) = centred(j) / sqrt(var + eps);
  }
  return y;
}

Matrix affine(const Matrix& x, const std::map<std::string, Matrix>& parameters) {
  const Matrix &weight = parameters.at("weight"), &bias = parameters.at("bias");
  return matrix(x.rows(), x.cols(), [&](Index i, Index j) { return x(i, j) * weight(0, j) + bias(0, j); });
}

/// What follows a layer; keeps numbers bounded.
Both between(Problem& problem, const NodeKind& kind, const Both& h) {
  Draw& draw = problem.draw;
  const Index cols = h.cols();
  const std::uint64_t seed = draw.bits();
  Generator gen(seed), twin(seed);
  const double p = draw.one_of({0.0, 0.4}), eps = 0.1;
  const std::span<const Index> ids = kind.mine;
  const Index what = draw.integer(0, 5);
  problem.says << "then " << what << "; ";
  if (what == 0) return {tanh(h.ours), map(h.reference, [](Number x) { return tanh(x); })};
  if (what == 1) return {sigmoid(h.ours), map(h.reference, sar::test::sigmoid)};
  if (what == 2) {
    const auto drop = std::make_shared<Dropout>(p, gen);
    problem.keep(drop);
    return {
        (*drop)(tanh(relu(h.ours)), ids),
        dropped(map(h.reference, [](Number x) { return tanh(sar::test::relu(x)); }), p, twin.next_stream())};
  }
  if (what == 3) {
    const auto norm = std::make_shared<LayerNorm>(cols, eps);
    Matrix y = affine(standardised(h.reference, eps), problem.adopt(norm));
    return {(*norm)(h.ours), std::move(y)};
  }
  if (kind.size() < 2) return h;  // a batch of one row has no variance
  const auto norm = std::make_shared<DistributedBN1D>(cols, problem.comm(), BatchNormOptions{.eps = eps});
  Matrix y = affine(transposed(standardised(transposed(h.reference), eps)), problem.adopt(norm));
  if (what == 4) return {(*norm)(h.ours), std::move(y)};
  const auto drop = std::make_shared<Dropout>(p, gen);
  problem.keep(drop);
  return {batch_norm_relu_dropout(h.ours, *norm, *drop, ids),
          dropped(map(y, sar::test::relu), p, twin.next_stream())};
}

/// One operation or layer on a relation, whose destinations have new rows then.
void take_step(Problem& problem, std::vector<Both>& rows) {
  Draw& draw = problem.draw;
  const Relation& relation = problem.relations[static_cast<std::size_t>(
      draw.integer(0, static_cast<Index>(problem.relations.size()) - 1))];
  const NodeKind& kind = problem.kinds[relation.dst_kind];
  Graph graph = relation.graph;
  const GraphOptions options{
      .mode = draw.one_of({HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}),
      .pipeline_depth = static_cast<int>(draw.integer(1, 3)),
      .max_halo_bytes = draw.one_of<Index>({0, 1, 100, 1000}),
      .edge_chunk = draw.one_of<Index>({1, 7, 4096})};
  graph.set_options(options);
  problem.says << "mode " << static_cast<int>(options.mode) << ", pieces " << options.pipeline_depth << " of "
               << options.max_halo_bytes << ", blocks " << options.edge_chunk << "; ";

  Both src = rows[relation.src_kind], dst = rows[relation.dst_kind];
  DenseGraph dense = relation.dense;
  std::shared_ptr<const MessageFlowGraph> mfg;
  std::vector<bool> wanted(static_cast<std::size_t>(kind.size()), true);
  if (relation.dense.one_kind && draw.chance(0.3)) {
    std::vector<Index> seeds;
    for (Index v = 0; v < kind.size(); ++v) wanted[static_cast<std::size_t>(v)] = draw.chance(0.4);
    for (const Index v : kind.mine)
      if (wanted[static_cast<std::size_t>(v)]) seeds.push_back(kind.new_id[static_cast<std::size_t>(v)]);
    mfg = std::make_shared<const MessageFlowGraph>(construct_mfgs(graph, seeds, 1).front());
    problem.keep(mfg);
    std::erase_if(dense.edges, [&](const Edge& e) { return !wanted[static_cast<std::size_t>(e.dst)]; });
    src.ours = gather_rows(src.ours, mfg->src_rows());
    dst.ours = slice_rows(src.ours, 0, mfg->num_dst_nodes());
    problem.says << "on an MFG; ";
  }
  const auto on = mfg ? std::shared_ptr<const Graph>(mfg) : std::make_shared<Graph>(graph);
  problem.keep(on);
  Step step{problem, relation, *on, dense, mfg, src, dst};
  Both y = draw.chance(0.5) ? apply_operation(step) : apply_layer(step);
  if (mfg) {
    y.ours = scatter_add_rows(y.ours, mfg->dst_rows(), static_cast<Index>(kind.mine.size()));
    y.reference = matrix(y.reference.rows(), y.cols(), [&](Index v, Index j) {
      return wanted[static_cast<std::size_t>(v)] ? y.reference(v, j) : Number(0);
    });
  }
  rows[relation.dst_kind] = between(problem, kind, y);
}

/// False when the reference had to tell apart what rounding may turn round.
bool run_problem(const Communicator& comm, std::uint64_t seed, std::uint64_t attempt) {
  Problem problem(comm, seed, attempt);
  const ThreadLimit threads(static_cast<int>(problem.draw.integer(1, 3)));
  const Tape tape;
  std::vector<Both> rows;
  for (const NodeKind& kind : problem.kinds)
    rows.push_back(problem.node_rows(kind, problem.draw.integer(1, 5)));
  for (Index step = problem.draw.integer(1, 3); step > 0; --step) take_step(problem, rows);
  if (Number::had_close_call()) return false;
  std::vector<std::pair<const NodeKind*, Both>> results;
  for (std::size_t k = 0; k < rows.size(); ++k) results.emplace_back(&problem.kinds[k], std::move(rows[k]));
  const std::string errors = problem.compare(results);
  CAPTURE(problem.says.str());
  CHECK(errors == "");
  return true;
}

}  // namespace

TEST_CASE("random layers on random graphs are what the formulas say") {
  const Communicator comm = Communicator::world();
  const std::uint64_t first = number_from("SAR_STRESS_FIRST", 1000 * static_cast<std::uint64_t>(comm.size())),
                      count = number_from("SAR_STRESS_SEEDS", 100);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::string again = "SAR_STRESS_FIRST=" + std::to_string(seed) +
                              " SAR_STRESS_SEEDS=1 tests/mpirun.sh mpirun " + std::to_string(comm.size()) +
                              " .../test_stress";
    CAPTURE(again);
    MPI_Pcontrol(static_cast<int>(seed % (1U << 31)));  // a schedule of its own in tests/support/noise
    const std::size_t before = live_bytes();
    std::uint64_t attempt = 0;
    while (!run_problem(comm, seed, attempt)) ++attempt;
    CHECK(live_bytes() == before);
  }
}
