// SPDX-License-Identifier: MIT

/// Weights and features of edges in HeteroGraphConv: on the whole graph, on blocks, in every mode; wrong
/// input.
#include "graph/hetero/typed_test_graph.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/nn/conv/dot_gat_conv.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/hetero_graph_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

using Rows = HeteroGraphConv::Rows;
using EdgeArguments = HeteroGraphConv::EdgeArguments;
using Pair = std::pair<Variable, Variable>;
constexpr Index width = 4;

Variable flat(const Variable& y) {
  return reshape(y, {y.num_rows(), y.shape().row_size()});
}
/// Heads side by side, as rows of the other layers.
struct FlatGAT : GATConv {
  using GATConv::GATConv;
  Variable operator()(const Graph& graph, const Pair& feat, const Variable& weight = {}) {
    return flat(GATConv::operator()(graph, feat, weight));
  }
};
struct FlatEdgeGAT : EdgeGATConv {
  using EdgeGATConv::EdgeGATConv;
  Variable operator()(const Graph& graph, const Pair& feat, const Variable& edges) {
    return flat(EdgeGATConv::operator()(graph, feat, edges));
  }
};

/// A layer for each relation, and the same layers by themselves.
struct Net {
  using Layer = std::function<Variable(const Graph&, const Pair&, const Variable& edges)>;
  HeteroGraphConv conv{RelationAggregate::sum};
  std::map<std::string, Layer> layers;
  std::map<std::string, Index> edge_widths{
      {"writes", 1}, {"cites", 3}, {"of", 1}, {"about", 2}, {"written_by", 1}};

  Net() {
    Generator gen(4);
    const std::pair both(width, width);
    auto& writes = conv.emplace_back<SAGEConv>({"author", "writes", "paper"}, both, width, gen);
    auto& cites = conv.emplace_back<FlatEdgeGAT>({"paper", "cites", "paper"}, both, 3, width / 2, 2, gen);
    auto& of = conv.emplace_back<FlatGAT>({"field", "of", "paper"}, both, width / 2, 2, gen);
    auto& about = conv.emplace_back<TransformerConv>({"paper", "about", "field"}, both, width / 2, 2, gen,
                                                     TransformerConvOptions{.edge_dim = 2});
    auto& written = conv.emplace_back<GraphConv>({"paper", "written_by", "author"}, width, width, gen);
    conv.emplace_back<SAGEConv>({"author", "knows", "author"}, both, width, gen);
    layers["writes"] = [&](const auto& g, const Pair& x, const Variable& e) { return writes(g, x, e); };
    layers["cites"] = [&](const auto& g, const Pair& x, const Variable& e) { return cites(g, x, e); };
    layers["of"] = [&](const auto& g, const Pair& x, const Variable& e) { return of(g, x, e); };
    layers["about"] = [&](const auto& g, const Pair& x, const Variable& e) { return about(g, x, e); };
    layers["written_by"] = [&](const auto& g, const Pair& x, const Variable& e) {
      return written(g, x.first, e);
    };
  }
};

/// Rows with numbers of the ids, which want gradients.
Variable rows_of_ids(const Array<Index>& ids, Index columns, int salt) {
  Tensor rows(columns == 1 ? Shape{std::ssize(ids)} : Shape{std::ssize(ids), columns});
  for (Index i = 0; i < std::ssize(ids); ++i)
    for (Index j = 0; j < columns; ++j)
      rows.row(i)[j] = static_cast<real>(
          1.1 + std::sin(static_cast<double>(7 * ids[static_cast<std::size_t>(i)] + j + salt)));
  return {rows, true};
}

struct Problem {
  Rows x;
  EdgeArguments edges;

  Problem(const Graph& graph, const Net& net) {
    int salt = 0;
    for (const std::string& type : graph.node_types())
      x[type] = rows_of_ids(graph.node_ids(type), width, ++salt);
    for (const auto& [relation, columns] : net.edge_widths)
      edges[relation] = rows_of_ids(graph[relation].edge_ids(), columns, ++salt);
  }
};

Variable total(const Rows& y) {
  Variable all;
  for (const auto& [type, rows] : y) {
    const Variable part = sum(rows * rows);
    all = all.defined() ? all + part : part;
  }
  return all;
}

std::vector<GraphOptions> ways() {
  std::vector<GraphOptions> all;
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot})
    for (const Index bytes : {Index{0}, Index{1}}) all.push_back({.mode = mode, .max_halo_bytes = bytes});
  return all;
}

void check_rows(const Tensor& found, const Tensor& want) {
  REQUIRE(found.defined());
  CHECK(relative_error(found, want) < 10 * tolerance());
}

}  // namespace

TEST_CASE("HeteroGraphConv gives each layer the weights or features of its edges") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  for (const auto& books : typed_books(typed, comm.size()))
    for (const GraphOptions& options : ways()) {
      CAPTURE(static_cast<int>(options.mode));
      CAPTURE(options.max_halo_bytes);
      const Graph graph = shard(comm, typed, books, options);
      Net net;
      Problem found(graph, net), want(graph, net);
      Tape tape;
      const Rows y = net.conv(graph, found.x, found.edges);
      tape.backward(total(y));
      Tape other;
      Rows sums;
      for (const EdgeType& type : graph.edge_types()) {
        if (type.relation == "knows") continue;  // without edges: sums of it are its self term
        const Variable part = net.layers.at(type.relation)(
            graph[type], {want.x.at(type.source), want.x.at(type.destination)}, want.edges.at(type.relation));
        Variable& of_type = sums[type.destination];
        of_type = of_type.defined() ? of_type + part : part;
      }
      for (const std::string type : {"paper", "field"}) check_rows(y.at(type).value(), sums.at(type).value());
      other.backward(total({{"paper", sums.at("paper")}, {"field", sums.at("field")}}));
      for (const std::string relation : {"writes", "cites", "of", "about"})
        check_rows(found.edges.at(relation).grad(), want.edges.at(relation).grad());
      CHECK(found.edges.at("written_by").grad().defined());
      check_rows(found.x.at("field").grad(), want.x.at("field").grad());
    }
}

TEST_CASE("gradients of weights and features of edges are finite differences") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const Graph graph = shard(comm, typed, typed_books(typed, comm.size()).front());
  Net net;
  const Problem problem(graph, net);
  std::vector<Variable> inputs;
  for (const auto& [relation, rows] : problem.edges) inputs.push_back(rows);
  const auto f = [&](const std::vector<Variable>&) {
    std::vector<Variable> parts;
    for (const auto& [type, y] : net.conv(graph, problem.x, problem.edges)) parts.push_back(y);
    return concat_rows(parts);
  };
  CHECK_NOTHROW(gradcheck(f, inputs,
                          {.directions = 3, .sum_over_ranks = [&](double x) { return comm.all_reduce(x); }}));
}

TEST_CASE("on blocks, MessageFlowGraph::edge_rows are the rows of the edges") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  for (const auto& books : typed_books(typed, comm.size())) {
    const Graph graph = shard(comm, typed, books);
    const HomogeneousForm& form = graph.to_homogeneous();
    const Index first = form.graph.topology().dst_book.begin(comm.rank());
    std::vector<Index> rows, seeds;
    for (Index i = 0; i < form.graph.num_dst_nodes(); ++i)
      if (form.graph.dst_ids()[static_cast<std::size_t>(i)] % 3 != 1) {
        rows.push_back(i);
        seeds.push_back(first + i);
      }
    Net net;
    Problem whole(graph, net), part(graph, net);
    Tape tape;
    const Variable y = gather_rows(form.concat(net.conv(graph, whole.x, whole.edges)), rows);
    tape.backward(sum(y * y));

    const std::vector<MessageFlowGraph> blocks = construct_mfgs(form.graph, seeds, 1);
    const MessageFlowGraph block(graph, blocks.front());
    Tape of_block;
    EdgeArguments edges;
    for (const auto& [relation, all] : part.edges) {
      const Array<Index> places = block.edge_rows(relation);
      REQUIRE(std::ssize(places) == block[relation].num_edges());
      for (std::size_t e = 0; e < places.size(); ++e)
        CHECK(graph[relation].edge_ids()[static_cast<std::size_t>(places[e])] ==
              block[relation].edge_ids()[e]);
      edges[relation] = gather_rows(all, block.edge_rows(relation));
    }
    const Variable x = gather_rows(form.concat(part.x), blocks.front().src_rows());
    const Variable z = block.join(net.conv(block, block.split(x), edges));
    check_rows(z.value(), y.value());
    of_block.backward(sum(z * z));
    for (const auto& [relation, all] : part.edges) check_rows(all.grad(), whole.edges.at(relation).grad());

    const NeighborSampler sampler(form.graph, {2}, {.seed = 3});
    const MessageFlowGraph sampled(graph, sampler.sample_blocks(seeds).front());
    for (const EdgeType& type : graph.edge_types()) {
      const Array<Index> places = sampled.edge_rows(type);
      for (std::size_t e = 0; e < places.size(); ++e)
        CHECK(graph[type].edge_ids()[static_cast<std::size_t>(places[e])] == sampled[type].edge_ids()[e]);
    }
  }
}

TEST_CASE("weights and features that a layer does not read, or that are missing, are refused on all ranks") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const Graph graph = shard(comm, typed, typed_books(typed, comm.size()).front());
  Net net;
  const Problem problem(graph, net);
  const bool bad = comm.rank() == comm.size() - 1;
  const auto refused = [&](const std::function<void(EdgeArguments&)>& change) {
    EdgeArguments edges = problem.edges;
    if (bad) change(edges);
    return thrown_by_all<Error>(comm, [&] { (void)net.conv(graph, problem.x, edges); });
  };
  CHECK(refused([](EdgeArguments& edges) { edges.erase("cites"); }) ==
        "there are no rows of the edges of 'paper:cites:paper', which its layer reads");
  CHECK(refused([&](EdgeArguments& edges) {
          edges["likes"] = edges["of"];
        }).starts_with("there is no edge type 'likes'"));
  CHECK(refused([](EdgeArguments& edges) {
          edges["paper:cites:paper"] = edges["cites"];
        }).starts_with("there are rows of the edges of 'paper:cites:paper' twice"));
  CHECK(refused([](EdgeArguments& edges) {
          const Index n = edges["of"].num_rows();
          edges["of"] = Variable(Tensor(Shape{n + 1}));
        }).starts_with("rows of the edges of 'field:of:paper' have shape ["));
  HeteroGraphConv conv;
  Generator gen(1);
  for (const EdgeType& type : graph.edge_types())
    conv.emplace_back<GATv2Conv>({type.source, type.relation, type.destination}, std::pair(width, width), 2,
                                 2, gen);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)conv(graph, problem.x, {{"of", problem.edges.at("of")}});
        }) == "there are rows of the edges of 'field:of:paper', expected none, because its layer reads none");
}
