#include "graph/test_graphs.hpp"
#include "support/rows.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/distributed.hpp>
#include <sar/nn/loss.hpp>
#include <sar/nn/model/graph_model.hpp>
#include <sar/nn/optimizer.hpp>
#include <sar/nn/state_dict.hpp>

#include <cmath>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index in_feats = 5, out_feats = 3;

/// One of each type, and of each norm, activation and aggregator.
std::vector<ModelDescription> descriptions() {
  std::vector<ModelDescription> all;
  for (const std::string& type : ModelDescription::types())
    all.push_back({.type = type, .in_feats = in_feats, .hidden = 8, .out_feats = out_feats});
  for (const std::string norm : {"batch", "layer"})
    for (const std::string type : {"sage", "gat"})
      all.push_back({.type = type,
                     .in_feats = in_feats,
                     .hidden = 8,
                     .out_feats = out_feats,
                     .norm = norm,
                     .dropout = 0.25,
                     .residual = type == "gat" ? 2 : 0});
  for (const std::string& activation : ModelDescription::activations())
    all.push_back({.type = "gcn",
                   .in_feats = in_feats,
                   .hidden = 6,
                   .out_feats = out_feats,
                   .layers = 2,
                   .activation = activation,
                   .dropout = 0.25});
  for (const std::string aggregator : {"gcn", "pool", "lstm"})
    all.push_back({.in_feats = in_feats, .hidden = 6, .out_feats = out_feats, .aggregator = aggregator});
  for (const std::string aggregator : {"mean", "max", "min"})
    all.push_back(
        {.type = "gin", .in_feats = in_feats, .hidden = 6, .out_feats = out_feats, .aggregator = aggregator});
  all.push_back({.type = "gatv2",
                 .in_feats = in_feats,
                 .hidden = 8,
                 .out_feats = out_feats,
                 .heads = 2,
                 .out_heads = 3,
                 .attention_dropout = 0.25,
                 .residual = 1});
  all.push_back({.in_feats = in_feats, .out_feats = out_feats, .layers = 1});
  return all;
}

/// Rows of nodes and what the network shall say for them, on a part of a graph.
struct Problem {
  GraphShardManager graph;
  Tensor x, target;

  Problem(const Communicator& comm, const PartitionBook& book)
      : graph(renamed_shard(comm, whole(), book, {}, true)),
        x(local_rows(random_values(num_nodes * in_feats, 1), book, comm.rank(), in_feats)),
        target(local_rows(random_values(num_nodes * out_feats, 2), book, comm.rank(), out_feats)) {}

  static constexpr Index num_nodes = 60;
  static WholeGraph whole() { return random_graph("random", num_nodes, num_nodes, 400, 1); }
};

GraphModel model_of(const ModelDescription& description, const Communicator& comm) {
  Generator gen(7);
  return {description, comm, gen};
}

/// The losses of some training steps.
std::vector<double> curve(const Communicator& comm, const Problem& problem, GraphModel& model) {
  Adam adam(model.named_parameters(), {.lr = 0.01});
  std::vector<double> losses;
  for (int step = 0; step < 4; ++step) {
    Tape tape;
    const Variable loss = mse(model(problem.graph, problem.x), problem.target, comm);
    tape.backward(loss);
    model.forget_noise();
    gather_grads(comm, model);
    adam.step();
    adam.zero_grad();
    losses.push_back(static_cast<double>(loss.value().item()));
  }
  return losses;
}

std::vector<double> all_rows(const Communicator& comm, const Tensor& rows) {
  std::vector<double> mine(rows.values().begin(), rows.values().end());
  return comm.all_gather(std::span<const double>(mine));
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::isfinite(a[i]) ? std::max(largest, std::abs(a[i] - b[i])) : INFINITY;
  return largest;
}

}  // namespace

TEST_CASE("networks of every type learn, the same on any number of ranks, an empty one too") {
  const Communicator comm = Communicator::world(), self = Communicator::self();
  const double accepted = sizeof(real) == 8 ? 1e-10 : 2e-4;
  const Problem whole(self, PartitionBook::even(Problem::num_nodes, 1));
  for (const ModelDescription& description : descriptions()) {
    CAPTURE(description.to_json());
    GraphModel alone = model_of(description, self);
    const std::vector<double> expected = curve(self, whole, alone);
    CHECK(expected.back() < expected.front());
    alone.eval();
    const std::vector<double> rows = all_rows(self, alone(whole.graph, whole.x).value());
    for (const PartitionBook& book : row_splits(Problem::num_nodes, comm.size())) {
      const Problem part(comm, book);
      GraphModel model = model_of(description, comm);
      CHECK(largest_difference(curve(comm, part, model), expected) < accepted);
      model.eval();
      CHECK(largest_difference(all_rows(comm, model(part.graph, part.x).value()), rows) < accepted * 10);
    }
  }
}
