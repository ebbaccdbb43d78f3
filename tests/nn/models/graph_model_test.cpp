// SPDX-License-Identifier: MIT
#include "graph/test_graphs.hpp"
#include "support/effort.hpp"
#include "support/random_tensor.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/models/layer_stack.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/optimizer.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index in_feats = 5, out_feats = 3, edge_feats = 2;

/// A network with residual connections, and linear layers before and after, of each type.
std::vector<ModelDescription> layered() {
  const auto make = [](const std::string& type, const std::string& norm, const std::string& residual,
                       const std::string& jk, bool pre_linear) {
    return ModelDescription{.type = type,
                            .in_feats = in_feats,
                            .hidden = 8,
                            .out_feats = out_feats,
                            .norm = norm,
                            .dropout = 0.25,
                            .residual = residual,
                            .jk = jk,
                            .pre_linear = pre_linear};
  };
  std::vector<ModelDescription> all{make("sage", "batch", "linear", "last", false),
                                    make("gcn", "batch", "linear", "cat", false),
                                    make("gcn", "layer", "2", "", true),
                                    make("gat", "layer", "identity", "max", true),
                                    make("gatv2", "batch", "linear", "sum", true),
                                    make("gin", "none", "linear", "", false)};
  all[3].heads_of_layers = {2, 8, 4};
  return all;
}

/// One of each type, and of each norm, activation and aggregator.
std::vector<ModelDescription> descriptions() {
  std::vector<ModelDescription> all;
  for (const std::string& type : ModelDescription::types())
    all.push_back({.type = type,
                   .in_feats = in_feats,
                   .hidden = 8,
                   .out_feats = out_feats,
                   .edge_feats = type == "mesh_graph_net" ? edge_feats : 0});
  for (const std::string norm : {"batch", "layer"})
    for (const std::string type : {"sage", "gat"})
      all.push_back({.type = type,
                     .in_feats = in_feats,
                     .hidden = 8,
                     .out_feats = out_feats,
                     .norm = norm,
                     .dropout = 0.25,
                     .residual = type == "gat" ? "2" : ""});
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
                 .residual = "1"});
  all.push_back({.in_feats = in_feats, .out_feats = out_feats, .layers = 1});
  for (const ModelDescription& each : layered()) all.push_back(each);
  return all;
}

/// Rows of nodes and what the network shall say for them, on a part of a graph.
struct Problem {
  Graph graph, without_weights;
  Tensor x, target, edges;

  Problem(const Communicator& comm, const PartitionBook& book)
      : graph(renamed_shard(comm, whole(), book, {}, true)),
        without_weights(renamed_shard(comm, whole(), book)),
        x(local_rows(random_values(num_nodes * in_feats, 1), book, comm.rank(), in_feats)),
        target(local_rows(random_values(num_nodes * out_feats, 2), book, comm.rank(), out_feats)),
        edges({graph.num_edges(), edge_feats}) {
    for (Index e = 0; e < graph.num_edges(); ++e)
      for (Index j = 0; j < edge_feats; ++j)
        edges.row(e)[j] = static_cast<real>(0.1) * static_cast<real>((graph.edge_ids()[e] + 3 * j) % 7);
  }
  /// With weights, unless the network reads none.
  [[nodiscard]] const Graph& graph_of(const GraphModel& model) const {
    return layers_without_weights(model.description()).empty() ? graph : without_weights;
  }
  [[nodiscard]] Variable result(GraphModel& model) const {
    const Graph& its = graph_of(model);
    return model.description().edge_feats > 0 ? model(its, x, edges) : model(its, x);
  }

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
    const Variable loss = mse(problem.result(model), problem.target, comm);
    tape.backward(loss);
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
  std::size_t number = 0;
  for (const ModelDescription& description : descriptions()) {
    CAPTURE(description.to_json());
    GraphModel alone = model_of(description, self);
    const std::vector<double> expected = curve(self, whole, alone);
    CHECK(expected.back() < expected.front());
    alone.eval();
    const std::vector<double> rows = all_rows(self, whole.result(alone).value());
    for (const PartitionBook& book : some_of(row_splits(Problem::num_nodes, comm.size()), number++)) {
      const Problem part(comm, book);
      GraphModel model = model_of(description, comm);
      CHECK(largest_difference(curve(comm, part, model), expected) < accepted);
      model.eval();
      CHECK(largest_difference(all_rows(comm, part.result(model).value()), rows) < accepted * 10);
    }
  }
}

TEST_CASE("gradients with residual connections, linear layers and norms are those of finite differences") {
  if (sizeof(real) == 4) return;  // too few digits for three layers with norms
  const Communicator comm = Communicator::world();
  const Problem problem(comm, PartitionBook::even(Problem::num_nodes, comm.size()));
  for (ModelDescription description : layered()) {
    if (description.type == "gin") continue;  // ReLU inside
    CAPTURE(description.type);
    description.activation = "silu";
    description.dropout = 0;
    GraphModel model = model_of(description, comm);
    // With biases of 0, a node without edges has rows of equal numbers, near which layer norm is steep.
    for (const NamedParameter& each : model.named_parameters())
      if (each.name.ends_with("bias"))
        model.set_parameter(each.name, random_tensor(each.parameter.shape(), 3));
    std::vector<Variable> inputs{Variable(problem.x.clone(), true)};
    for (const Variable& parameter : model.parameters())
      if (parameter.requires_grad()) inputs.push_back(parameter);
    const auto result = [&](const std::vector<Variable>& in) {
      return model(problem.graph_of(model), in[0]);
    };
    const double step = 1e-6;  // leaky ReLU and maxima have kinks
    CHECK_NOTHROW(
        gradcheck(result, inputs, {.step = step, .directions = 3, .sum_over_ranks = [&](double value) {
                                     return comm.all_reduce(value, ReduceOp::sum);
                                   }}));
  }
}

TEST_CASE(
    "message flow graphs give the results of the whole graph, with residual connections and all layers") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(Problem::num_nodes, comm.size());
  const Problem problem(comm, book);
  Array<Index> seeds;
  for (Index v = 0; v < problem.graph.num_nodes(); v += 5) seeds.push_back(book.begin(comm.rank()) + v);
  for (const ModelDescription& description : layered()) {
    CAPTURE(description.to_json());
    Generator gen(3);
    LayerStack stack(description.checked(), comm, gen);
    stack.eval();
    const Tensor whole = stack(problem.graph, problem.x).value();
    const std::vector<MessageFlowGraph> blocks = construct_mfgs(problem.graph, seeds, 3);
    const Array<Index>& sources = blocks.front().src_rows();
    const Tensor rows = stack(blocks, gather_rows(problem.x, Array<Index>(sources))).value();
    const Array<Index>& results = blocks.back().dst_rows();
    REQUIRE(rows.num_rows() == std::ssize(results));
    double largest = 0;
    for (Index i = 0; i < rows.num_rows(); ++i)
      for (Index j = 0; j < out_feats; ++j)
        largest = std::max(largest, static_cast<double>(std::abs(rows.row(i)[j] - whole.row(results[i])[j])));
    CHECK(largest < (sizeof(real) == 8 ? 1e-12 : 1e-4));
  }
}

TEST_CASE("jumping knowledge reads what the layers give") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm, PartitionBook::even(Problem::num_nodes, comm.size()));
  for (const std::string jk : {"last", "sum", "max", "cat"}) {
    CAPTURE(jk);
    Generator gen(3);
    LayerStack stack(
        ModelDescription{
            .in_feats = in_feats, .hidden = 8, .out_feats = out_feats, .residual = "linear", .jk = jk}
            .checked(),
        comm, gen);
    std::vector<Variable> h;
    for (Index layer = 1; layer <= 3; ++layer)
      h.push_back(stack.after_layer(layer, problem.graph, problem.x));
    Variable lin_weight, lin_bias;
    for (const auto& [name, part] : stack.parts())
      if (name == "lin") lin_weight = part->parameters()[0], lin_bias = part->parameters()[1];
    REQUIRE(lin_weight.defined());
    Variable read = h[2];
    if (jk == "sum") read = h[0] + h[1] + h[2];
    if (jk == "cat") read = concat_columns({h[0], h[1], h[2]});
    if (jk == "max") {
      read = Variable(h[2].value().clone());
      for (const Variable& each : h)
        for (Index i = 0; i < read.value().size(); ++i)
          read.value().data()[i] = std::max(read.value().data()[i], each.value().data()[i]);
    }
    const Variable expected = linear(read, lin_weight, lin_bias), found = stack(problem.graph, problem.x);
    for (Index i = 0; i < found.value().size(); ++i)
      CHECK(std::abs(found.value().data()[i] - expected.value().data()[i]) <
            (sizeof(real) == 8 ? 1e-13 : 1e-5));
  }
}

TEST_CASE("a cached network learns as one without a cache, and refuses features that have changed") {
  const Communicator comm = Communicator::world();
  Problem problem(comm, PartitionBook::even(Problem::num_nodes, comm.size()));
  const ModelDescription description{
      .type = "sage", .in_feats = in_feats, .hidden = 8, .out_feats = out_feats};
  GraphModel plain = model_of(description, comm);
  Generator gen(7);
  GraphModel cached(description, comm, gen, true);
  CHECK(curve(comm, problem, cached) == curve(comm, problem, plain));
  for (real& value : problem.x.values()) value += 1;
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)problem.result(cached);
        }).starts_with("SAGEConv with cached"));
}

TEST_CASE("edge weights that the convolutions do not read are refused") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm, PartitionBook::even(Problem::num_nodes, comm.size()));
  REQUIRE(problem.graph.edge_weight().defined());
  const auto error_of = [&](const std::string& type, const Tensor& rows) {
    GraphModel model = model_of({.type = type,
                                 .in_feats = in_feats,
                                 .hidden = 8,
                                 .out_feats = out_feats,
                                 .edge_feats = rows.defined() ? edge_feats : 0},
                                comm);
    return thrown_by_all<InputError>(
        comm, [&] { (void)model(problem.graph, problem.x, rows.defined() ? Variable(rows) : Variable()); });
  };
  CHECK(error_of("gatv2", {}) ==
        "a network of type gatv2 on a graph with edge weights, which GATv2Conv does not read, expected a "
        "graph without weights, or a network of type sage, gcn, gat or gin");
  CHECK(error_of("gin", problem.edges)
            .starts_with("a network of type gin on a graph with edge weights, which GINEConv does not read"));
  CHECK(error_of("mesh_graph_net", problem.edges).find("which MeshGraphNet does not read") !=
        std::string::npos);
  for (const char* type : {"sage", "gcn", "gat", "gin"}) {
    GraphModel model =
        model_of({.type = type, .in_feats = in_feats, .hidden = 8, .out_feats = out_feats}, comm);
    CHECK_NOTHROW((void)model(problem.graph, problem.x));
  }
}

TEST_CASE("a batch norm freezes the biases of convolutions and residual connections that it cancels") {
  const Communicator comm = Communicator::self();
  const auto frozen = [&](ModelDescription description) {
    description.in_feats = in_feats;
    description.out_feats = out_feats;
    description.layers = 2;
    GraphModel model = model_of(description, comm);
    std::string names;
    for (const auto& [name, parameter] : model.named_parameters())
      if (!parameter.requires_grad()) names += name + " ";
    return names;
  };
  CHECK(frozen({.type = "gcn", .norm = "batch"}) == "layers.0.bias ");
  CHECK(frozen({.type = "gcn", .norm = "batch", .residual = "linear"}) == "layers.0.bias lins.0.bias ");
  CHECK(frozen({.type = "sage", .norm = "batch", .residual = "linear", .jk = "last"}) ==
        "convs.0.fc_self.bias convs.1.fc_self.bias lins.0.bias lins.1.bias ");
  CHECK(frozen({.type = "gatv2", .norm = "batch", .residual = "linear"}) == "lins.0.bias ");
  CHECK(frozen({.type = "gat", .norm = "batch", .residual = "1"}) == "layers.0.res_fc.bias ");
  CHECK(frozen({.type = "gcn", .norm = "layer", .residual = "linear"}).empty());
}

TEST_CASE("gradients of the input and of the parameters are those of finite differences") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm, PartitionBook::even(Problem::num_nodes, comm.size()));
  for (const std::string& type : ModelDescription::types()) {
    // ReLU inside of gin; in single precision also kinks and layer norms that take small differences
    const bool is_smooth = type != "gin" && (sizeof(real) == 8 || type == "sage" || type == "gcn");
    if (!is_smooth) continue;
    CAPTURE(type);
    GraphModel model = model_of({.type = type,
                                 .in_feats = in_feats,
                                 .hidden = 8,
                                 .out_feats = out_feats,
                                 .layers = 2,
                                 .norm = sizeof(real) == 8 ? "layer" : "none",
                                 .activation = "silu",
                                 .edge_feats = type == "mesh_graph_net" ? edge_feats : 0},
                                comm);
    std::vector<Variable> inputs{Variable(problem.x.clone(), true)};
    for (const Variable& parameter : model.parameters()) inputs.push_back(parameter);
    const auto result = [&](const std::vector<Variable>& in) {
      const Variable edges = type == "mesh_graph_net" ? Variable(problem.edges) : Variable();
      return model(problem.graph_of(model), in[0], edges);
    };
    CHECK_NOTHROW(gradcheck(result, inputs, {.directions = 3, .sum_over_ranks = [&](double value) {
                                               return comm.all_reduce(value, ReduceOp::sum);
                                             }}));
  }
}

TEST_CASE("the result of a mesh network is in the units of the statistics that it has seen") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm, PartitionBook::even(Problem::num_nodes, comm.size()));
  GraphModel model = model_of({.type = "mesh_graph_net",
                               .in_feats = in_feats,
                               .hidden = 8,
                               .out_feats = out_feats,
                               .layers = 1,
                               .edge_feats = edge_feats,
                               .normalize = true},
                              comm);
  REQUIRE(model.mesh_graph_net() != nullptr);
  const Tensor targets = Tensor::full({problem.graph.num_nodes(), out_feats}, 1000);
  model.mesh_graph_net()->update_statistics(problem.x, problem.edges, targets);
  const Tensor result = problem.result(model).value();
  for (const real value : result.values()) CHECK(std::abs(value - real(1000)) < real(100));
  CHECK(model_of({.in_feats = 1, .out_feats = 1}, comm).mesh_graph_net() == nullptr);
}

TEST_CASE("rows that do not fit the description are the same error on all ranks") {
  const Communicator comm = Communicator::world();
  const Problem problem(comm, PartitionBook::even(Problem::num_nodes, comm.size()));
  GraphModel model = model_of({.in_feats = in_feats, .out_feats = out_feats}, comm);
  const bool last = comm.rank() + 1 == comm.size();
  const Index rows = problem.graph.num_nodes(), edges = problem.graph.num_edges();
  const auto error_of = [&](GraphModel& of, const Variable& x, const Variable& of_edges) {
    return thrown_by_all<ShapeError>(comm, [&] { (void)of(problem.graph_of(of), x, of_edges); });
  };
  const auto text_of = [&](const Shape& shape) {  // of the last rank
    return comm.broadcast(concat(shape), comm.size() - 1);
  };
  CHECK(error_of(model, last ? Variable(Tensor({rows, 2})) : Variable(problem.x), {}) ==
        "a network of type sage on x of shape " + text_of({rows, 2}) + ", expected " +
            text_of({rows, in_feats}));
  CHECK(error_of(model, last ? Variable() : Variable(problem.x), {}) ==
        "a network of type sage without x, expected " + text_of({rows, in_feats}));
  CHECK(error_of(model, problem.x, last ? Variable(problem.edges) : Variable()) ==
        "a network of type sage on rows of edges, expected none, because it reads none");
  GraphModel mesh = model_of(
      {.type = "mesh_graph_net", .in_feats = in_feats, .out_feats = out_feats, .edge_feats = edge_feats},
      comm);
  CHECK(error_of(mesh, problem.x, last ? Variable() : Variable(problem.edges)) ==
        "a network of type mesh_graph_net without edges, expected " + text_of({edges, edge_feats}));
  CHECK(error_of(mesh, problem.x, last ? Variable(Tensor({edges, 5})) : Variable(problem.edges)) ==
        "a network of type mesh_graph_net on edges of shape " + text_of({edges, 5}) + ", expected " +
            text_of({edges, edge_feats}));
  CHECK(problem.result(model).shape() == Shape{rows, out_feats});  // all goes on
}
