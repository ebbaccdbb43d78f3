// SPDX-License-Identifier: MIT

/// Sums with factors of degrees against the same sums on the whole graph, with the factors as columns.
#include "graph/test_graphs.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/message/degree_factors.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index width = 5;

Tensor whole_tensor(const Shape& shape, std::uint64_t stream) {
  return to_tensor(random_values(shape.size(), stream), shape);
}

double factor_of(DegreeFactor factor, double degree) {
  if (factor == DegreeFactor::inverse) return 1 / std::max(degree, 1.0);
  if (factor == DegreeFactor::inverse_root) return 1 / std::sqrt(std::max(degree, 1.0));
  return 1 / (degree + 1);
}

/// The factors of n nodes by how often they are among `ends`; none: 1.
Tensor column(const std::vector<Index>& ends, Index n, std::optional<DegreeFactor> factor) {
  std::vector<double> degree(static_cast<std::size_t>(n), 0);
  for (const Index end : ends) degree[static_cast<std::size_t>(end)] += 1;
  Tensor values({n});
  for (Index i = 0; i < n; ++i)
    values.data()[i] =
        factor ? static_cast<real>(factor_of(*factor, degree[static_cast<std::size_t>(i)])) : 1;
  return values;
}

/// What a case differs in.
struct Choice {
  SumFactors factors;
  bool weighted, weight_gradient, base;
};

struct Result {
  Variable x, weight, base, out;
};

Result expected(const WholeGraph& g, const Choice& c) {
  const std::vector<Index> src(g.src.begin(), g.src.end()), dst(g.dst.begin(), g.dst.end());
  Result r{Variable(whole_tensor({g.num_src, width}, 1), true),
           Variable(whole_tensor({static_cast<Index>(g.src.size())}, 2), true),
           Variable(whole_tensor({g.num_dst, width}, 3), true),
           {}};
  const std::vector<Index>& ends = c.factors.src_degree == NodeDegree::out ? src : dst;
  Tape tape;
  Variable m = gather_rows(scale_rows(r.x, column(ends, g.num_src, c.factors.src)), src);
  if (c.weighted) m = m * reshape(r.weight, {r.weight.num_rows(), 1});
  r.out = scale_rows(scatter_add_rows(m, dst, g.num_dst), column(dst, g.num_dst, c.factors.dst));
  if (c.base) r.out = r.out + r.base;
  tape.backward(r.out, whole_tensor({g.num_dst, width}, 4));
  return r;
}

void check_case(const Communicator& comm, const WholeGraph& g, const Books& books,
                const GraphOptions& options, const Choice& c) {
  const Graph graph = shard(comm, g, books, options);
  const Result want = expected(g, c);
  const int p = comm.rank();
  for (int call = 0; call < 2; ++call) {  // the first fetches factors
    const Variable x(my_rows(want.x.value(), books.src, p), true);
    const Variable base(my_rows(want.base.value(), books.dst, p), true);
    const Variable weight(gather_rows(Variable(want.weight.value()), graph.edge_ids()).value(),
                          c.weight_gradient);
    Tape tape;
    const Variable out = scaled_sum(graph, x, c.weighted ? weight : Variable(), c.factors,
                                    c.base ? scale_shift(base, 1) : Variable());
    tape.backward(out, my_rows(whole_tensor({g.num_dst, width}, 4), books.dst, p));
    const auto check = [&](const Tensor& found, const Tensor& whole, const PartitionBook& book) {
      CHECK(error_of_part(found, my_rows(whole, book, p), whole) < tolerance());
    };
    check(out.value(), want.out.value(), books.dst);
    check(x.grad(), want.x.grad(), books.src);
    if (c.base) check(base.grad(), want.base.grad(), books.dst);
    if (c.weighted && c.weight_gradient)
      CHECK(error_of_part(weight.grad(), gather_rows(Variable(want.weight.grad()), graph.edge_ids()).value(),
                          want.weight.grad()) < tolerance());
  }
}

}  // namespace

TEST_CASE("sums with factors of degrees agree with the same sums on the whole graph") {
  const Communicator comm = Communicator::world();
  const SumFactors both{.src = DegreeFactor::inverse_root, .dst = DegreeFactor::inverse_root};
  for (const WholeGraph& g : test_graphs()) {
    for (const Books& books : test_books(g, comm.size())) {
      for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
        CAPTURE(g.name);
        CAPTURE(static_cast<int>(mode));
        check_case(comm, g, books, {.mode = mode}, {both, false, false, false});
        check_case(comm, g, books, {.mode = mode, .max_halo_bytes = 1}, {both, true, false, true});
        check_case(comm, g, books, {.mode = mode, .reproducible = true},
                   {{.src = DegreeFactor::inverse, .dst = {}}, true, true, true});
        check_case(comm, g, books, {.mode = mode, .pipeline_depth = 3, .max_halo_bytes = 100},
                   {{.src = {}, .dst = DegreeFactor::inverse_with_self}, false, false, true});
        if (!g.square) continue;
        check_case(comm, g, books, {.mode = mode, .max_halo_bytes = 40, .reproducible = true},
                   {{.src = DegreeFactor::inverse_root,
                     .src_degree = NodeDegree::source_in,
                     .dst = DegreeFactor::inverse},
                    false,
                    false,
                    false});
      }
    }
  }
}

TEST_CASE("finite differences of sums with factors of degrees") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 24, 24, 100, 5);
  const SumFactors both{.src = DegreeFactor::inverse_root, .dst = DegreeFactor::inverse_root};
  for (const Books& books : test_books(g, comm.size())) {
    const Graph graph = shard(comm, g, books, {});
    const Variable x(my_rows(whole_tensor({g.num_src, 2}, 1), books.src, comm.rank()), true);
    GradcheckOptions options;
    options.directions = 3;
    options.sum_over_ranks = [&](double value) { return comm.all_reduce(value); };
    const auto layer = [&](const std::vector<Variable>& in) {
      return scaled_sum(graph, in[0], {}, both, in[0] * real(2));
    };
    if (g.square) CHECK(thrown<Error>([&] { gradcheck(layer, {x}, options); }) == "nothing");
  }
}

TEST_CASE("factors of the sources travel once, those of the destinations never") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 60, 60, 400, 1);
  const Books books = test_books(g, comm.size()).front();
  const Graph graph = shard(comm, g, books, {});
  const Tensor x = my_rows(whole_tensor({g.num_src, width}, 1), books.src, comm.rank());
  const auto bytes = [&](const SumFactors& factors) {
    const std::uint64_t before = comm_bytes(graph);
    (void)scaled_sum(graph, x, {}, factors);
    return comm.all_reduce(comm_bytes(graph) - before);
  };
  const std::uint64_t plain = bytes({});
  CHECK(bytes({.src = {}, .dst = DegreeFactor::inverse_root}) == plain);
  const SumFactors both{.src = DegreeFactor::inverse_root, .dst = DegreeFactor::inverse_root};
  const std::uint64_t rows = comm.all_reduce(halo_traffic(g, books, comm).sends);
  CHECK(bytes(both) >= plain + rows * sizeof(real));
  CHECK(bytes(both) == plain);
}

TEST_CASE("sums with factors of degrees: operands that do not fit are the same error on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("bipartite", 20, 11, 60, 3, false);
  const Books books = test_books(g, comm.size()).front();
  const Graph graph = shard(comm, g, books, {});
  const bool here = comm.rank() == comm.size() - 1;
  const Tensor x = Tensor::full({graph.num_src_nodes(), 2}, 1);
  const Tensor wrong = Tensor::full({graph.num_src_nodes() + (here ? 1 : 0), 2}, 1);
  const SumFactors root{.src = DegreeFactor::inverse_root, .dst = {}};
  CHECK(thrown_by_all<ShapeError>(comm, [&] {
          (void)scaled_sum(graph, wrong, {}, root);
        }).find("source rows have shape") != std::string::npos);
  const SumFactors in_degrees{
      .src = DegreeFactor::inverse_root, .src_degree = NodeDegree::source_in, .dst = {}};
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)scaled_sum(graph, x, {}, in_degrees);
        }).find("the in-degrees of the sources are not known") != std::string::npos);
  CHECK(scaled_sum(graph, x, {}, root).num_rows() == graph.num_dst_nodes());
}
