// SPDX-License-Identifier: MIT

/// HeteroGraphConv on a Graph: golden vectors, one process, one relation, what travels, wrong input.
#include "graph/hetero/golden_typed_graph.hpp"
#include "support/random_tensor.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/conv/gin_conv.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/hetero_graph_conv.hpp>
#include <sar/nn/conv/multi_hop_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/norms.hpp>
#include <sar/nn/train/distributed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>

using namespace sar;
using namespace sar::test;

namespace {

using Rows = HeteroGraphConv::Rows;
using Books_of_types = std::map<std::string, PartitionBook>;

/// Heads side by side, as rows of the other layers.
struct FlatGAT : GATConv {
  using GATConv::GATConv;
  Variable operator()(const Graph& graph, const std::pair<Variable, Variable>& feat) {
    const Variable y = GATConv::operator()(graph, feat);
    return reshape(y, {y.num_rows(), y.shape().row_size()});
  }
};

const std::map<std::string, RelationAggregate> aggregates{{"sum", RelationAggregate::sum},
                                                          {"mean", RelationAggregate::mean},
                                                          {"min", RelationAggregate::min},
                                                          {"max", RelationAggregate::max},
                                                          {"stack", RelationAggregate::stack}};

std::vector<GraphOptions> ways() {
  std::vector<GraphOptions> all;
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot})
    for (const Index bytes : {Index{0}, Index{1}}) all.push_back({.mode = mode, .max_halo_bytes = bytes});
  return all;
}

void check_gradients(const HeteroGraphConv& conv, const Case& golden) {
  for (const NamedParameter& named : conv.named_parameters()) {
    CAPTURE(named.name);
    if (!golden.has("grad_param." + named.name)) {
      CHECK_FALSE(named.parameter.grad().defined());
      continue;
    }
    const std::vector<double> want = golden.values("grad_param." + named.name);
    if (std::ranges::all_of(want, [](double x) { return std::abs(x) < 1e-12; }))
      for (const real x : named.parameter.grad().values()) CHECK(std::abs(x) < tolerance());
    else
      CHECK(relative_error(named.parameter.grad(), want) < tolerance());
  }
}

void check_case(const Communicator& comm, const Case& golden, RelationAggregate aggregate,
                const GraphOptions& options) {
  const TypedGraph typed = golden_typed_graph(golden);
  const auto width = [&](const std::string& type) {
    return static_cast<Index>(golden.number("in_feats." + type));
  };
  const auto out = static_cast<Index>(golden.number("out_feats"));
  const Index paper = width("paper"), author = width("author"), field = width("field");
  for (const auto& books : typed_books(typed, comm.size())) {
    Generator gen(1);
    HeteroGraphConv conv(aggregate);
    conv.emplace_back<SAGEConv>({"author", "knows", "author"}, author, out, gen);
    conv.emplace_back<SAGEConv>({"author", "writes", "paper"}, std::pair(author, paper), out, gen,
                                SAGEConvOptions{.aggregator = SAGEAggregator::pool});
    conv.emplace_back<FlatGAT>({"field", "of", "paper"}, std::pair(field, paper), out / 2, 2, gen);
    conv.emplace_back<SAGEConv>({"paper", "about", "field"}, std::pair(paper, field), out, gen);
    conv.emplace_back<GINConv>({"paper", "cites", "paper"}, std::make_shared<Linear>(paper, out, gen),
                               GINConvOptions{.init_eps = 0.25});
    conv.emplace_back<GraphConv>({"paper", "written_by", "author"}, paper, out, gen);
    REQUIRE(conv.named_parameters().size() == golden.arrays("param.").size());
    for (const NamedParameter& named : conv.named_parameters())
      conv.set_parameter(named.name, golden.tensor("param." + named.name));

    const Graph graph = shard(comm, typed, books, options);
    Rows x;
    for (const auto& [type, size] : typed.nodes)
      x[type] = Variable(rank_rows(golden.tensor("in." + type), books.at(type), comm.rank()), true);
    Tape tape;
    Variable total;
    for (const auto& [type, y] : conv(graph, x)) {
      CAPTURE(type);
      CHECK(error_of_rows(y.value(), golden.tensor("out." + type), books.at(type), comm.rank()) <
            tolerance());
      const Variable part =
          sum(y * Variable(rank_rows(golden.tensor("grad_out." + type), books.at(type), comm.rank())));
      total = total.defined() ? total + part : part;
    }
    tape.backward(total);
    for (const auto& [type, rows] : x)
      CHECK(error_of_rows(rows.grad(), golden.tensor("grad_in." + type), books.at(type), comm.rank()) <
            tolerance());
    gather_grads(comm, conv);
    check_gradients(conv, golden);
  }
}

/// Layers that draw random numbers and keep running statistics.
struct Net : Module {
  HeteroGraphConv conv{RelationAggregate::sum};
  DistributedBN1D* norm = nullptr;
  Net(const Communicator& comm, Index width) {
    Generator gen(4);
    conv.emplace_back<SAGEConv>({"author", "knows", "author"}, width, width, gen);
    conv.emplace_back<SAGEConv>({"author", "writes", "paper"}, std::pair(width, width), width, gen,
                                SAGEConvOptions{.feat_drop = 0.4});
    conv.emplace_back<SAGEConv>({"field", "of", "paper"}, std::pair(width, width), width, gen);
    conv.emplace_back<FlatGAT>({"paper", "about", "field"}, std::pair(width, width), width / 2, 2, gen,
                               GATConvOptions{.feat_drop = 0.3, .attn_drop = 0.2});
    auto batch_norm = std::make_shared<DistributedBN1D>(width, comm);
    norm = batch_norm.get();
    conv.emplace_back<GINConv>({"paper", "cites", "paper"}, batch_norm);
    conv.emplace_back<GraphConv>({"paper", "written_by", "author"}, width, width, gen);
    register_module("conv", conv);
  }
};

struct Outcome {
  std::map<std::string, Tensor> y, grad_x;
  std::vector<Tensor> grad, state;
  std::vector<std::uint64_t> counters;
};

/// Two training steps, so that the second one has other draws.
Outcome train(const Communicator& comm, const TypedGraph& typed, const Books_of_types& books,
              const GraphOptions& options) {
  constexpr Index width = 6;
  const Graph graph = shard(comm, typed, books, options);
  Net net(comm, width);
  Rows x;
  std::uint64_t stream = 1;
  for (const auto& [type, size] : typed.nodes)
    x[type] = Variable(rank_rows(random_tensor({size, width}, stream++), books.at(type), comm.rank()), true);
  Outcome found;
  for (int step = 0; step < 2; ++step) {
    Tape tape;
    Variable total;
    for (const auto& [type, y] : net.conv(graph, x)) {
      found.y[type] = y.value().clone();
      const Variable part = sum(y * y);
      total = total.defined() ? total + part : part;
    }
    tape.backward(total);
  }
  gather_grads(comm, net);
  for (const auto& [type, rows] : x) found.grad_x[type] = rows.grad();
  for (const NamedParameter& each : net.named_parameters()) found.grad.push_back(each.parameter.grad());
  for (const NamedBuffer& each : net.named_buffers()) found.state.push_back(each.tensor.clone());
  for (const NamedCounter& each : net.named_counters()) found.counters.push_back(*each.value);
  return found;
}

Books_of_types whole_books(const TypedGraph& typed) {
  return typed_books(typed, 1).front();
}

}  // namespace

TEST_CASE("HeteroGraphConv on a Graph: golden vectors") {
  const Communicator comm = Communicator::world();
  for (const auto& [name, aggregate] : aggregates)
    for (const GraphOptions& options : ways()) {
      CAPTURE(name);
      CAPTURE(static_cast<int>(options.mode));
      CAPTURE(options.max_halo_bytes);
      check_case(comm, Case("hetero/HeteroGraphConv__" + name), aggregate, options);
    }
}

TEST_CASE("draws and running statistics are those of one process, in every mode") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const Outcome want = train(Communicator::self(), typed, whole_books(typed), {});
  for (const auto& books : typed_books(typed, comm.size()))
    for (const GraphOptions& options : ways()) {
      CAPTURE(static_cast<int>(options.mode));
      CAPTURE(options.max_halo_bytes);
      const Outcome found = train(comm, typed, books, options);
      for (const auto& [type, size] : typed.nodes) {
        CAPTURE(type);
        CHECK(error_of_rows(found.y.at(type), want.y.at(type), books.at(type), comm.rank()) < tolerance());
        CHECK(error_of_rows(found.grad_x.at(type), want.grad_x.at(type), books.at(type), comm.rank()) <
              tolerance());
      }
      for (std::size_t k = 0; k < want.grad.size(); ++k)
        CHECK(relative_error(found.grad[k], want.grad[k]) < 10 * tolerance());
      for (std::size_t k = 0; k < want.state.size(); ++k)
        CHECK(relative_error(found.state[k], want.state[k]) < tolerance());
      CHECK(found.counters == want.counters);
    }
}

TEST_CASE("gradients agree with finite differences") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const auto books = typed_books(typed, comm.size()).back();
  for (const RelationAggregate aggregate : {RelationAggregate::mean, RelationAggregate::stack}) {
    const Graph graph = shard(comm, typed, books);
    Generator gen(2);
    HeteroGraphConv conv(aggregate);
    for (const EdgeType& type : graph.edge_types())
      conv.emplace_back<SAGEConv>({type.source, type.relation, type.destination}, std::pair(3, 3), 2, gen);
    std::vector<Variable> inputs;
    for (const std::string& type : graph.node_types())
      inputs.emplace_back(
          rank_rows(random_tensor({typed.size(type), 3}, 7 + inputs.size()), books.at(type), comm.rank()),
          true);
    const auto f = [&](const std::vector<Variable>& in) {
      std::vector<Variable> parts;
      for (const auto& [type, y] : conv(graph, {{"paper", in[0]}, {"author", in[1]}, {"field", in[2]}}))
        parts.push_back(sum(y * y));
      return concat_rows(parts);
    };
    CHECK(gradcheck(f, inputs,
                    {.directions = 4, .sum_over_ranks = [&](double x) { return comm.all_reduce(x); }}) < 1);
  }
}

TEST_CASE("one node type and one relation are the layer alone, bit for bit") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  for (const Books& books : test_books(whole, comm.size()))
    for (const GraphOptions& options : ways()) {
      const Graph plain = shard(comm, whole, books, options);
      const Graph typed(comm, {{.name = "v", .book = books.src}},
                        {{.type = {"v", "e", "v"}, .edges = edges_of_rank(comm, whole, books.dst)}}, options);
      Generator gen(1);
      HeteroGraphConv conv;
      const GraphConv& layer = conv.emplace_back<GraphConv>({"v", "e", "v"}, 7, 4, gen);
      const Tensor rows = rank_rows(random_tensor({60, 7}, 3), books.src, comm.rank());
      std::vector<Tensor> found;
      for (const bool alone : {true, false}) {
        const Variable x(rows, true);
        Tape tape;
        const Variable y = alone ? layer(plain, x) : conv(typed, {{"v", x}}).at("v");
        tape.backward(y, y.value().clone());
        found.push_back(y.value());
        found.push_back(x.grad());
        for (Variable p : conv.parameters()) found.push_back(p.grad().clone()), p.zero_grad();
      }
      for (std::size_t k = 0; k < found.size() / 2; ++k)
        CHECK(same_bits(found[k], found[k + found.size() / 2]));
    }
}

TEST_CASE("layers of several hops, cached layers and graphs by name give what layers on Graph give") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const auto books = typed_books(typed, comm.size()).front();
  const Graph graph = shard(comm, typed, books);
  Generator gen(3);
  HeteroGraphConv conv(RelationAggregate::max);
  conv.emplace_back<TAGConv>({"author", "knows", "author"}, 4, 3, gen);
  conv.emplace_back<SAGEConv>({"author", "writes", "paper"}, std::pair(4, 4), 3, gen,
                              SAGEConvOptions{.cached = true});
  conv.emplace_back<GraphConv>({"field", "field:of:paper", "paper"}, 4, 3, gen,
                               GraphConvOptions{.cached = true});
  conv.emplace_back<GraphConv>({"paper", "about", "field"}, 4, 3, gen);
  conv.emplace_back<TAGConv>({"paper", "cites", "paper"}, 4, 3, gen);
  conv.emplace_back<GraphConv>({"paper", "written_by", "author"}, 4, 3, gen);
  Rows x;
  HeteroGraphConv::Graphs graphs;
  for (const std::string& type : graph.node_types())
    x[type] = rank_rows(random_tensor({typed.size(type), 4}, 5), books.at(type), comm.rank());
  for (const EdgeType& type : graph.edge_types())
    graphs.emplace(type.relation == "of" ? type.canonical_name() : type.relation, graph[type]);
  const Rows want = conv(graphs, x);
  for (int call = 0; call < 2; ++call)
    for (const auto& [type, y] : conv(graph, x))
      CHECK(relative_error(y.value(), want.at(type).value()) < tolerance());
}

TEST_CASE("rows travel once for all relations that read them") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const auto books = typed_books(typed, comm.size()).front();
  std::int64_t papers = 0;
  const Graph graph = shard(comm, typed, books, {.mode = HaloMode::sequential});
  for (const HaloRound& round : graph["cites"].topology().rounds()) papers += round.recv_rows;
  papers = comm.all_reduce(papers);
  Generator gen(3);
  HeteroGraphConv conv;
  for (const std::string relation : {"about", "cites", "written_by"}) {
    const EdgeType& type = graph.edge_types()[find_edge_type(graph.edge_types(), relation)];
    conv.emplace_back<SAGEConv>({type.source, relation, type.destination}, std::pair(4, 4), 4, gen);
  }
  std::vector<EdgeTypeSpec> edges;
  for (const auto& [type, whole] : typed.relations)
    if (type.source == "paper")
      edges.push_back({.type = type, .edges = edges_of_rank(comm, whole, books.at(type.destination))});
  std::vector<NodeTypeSpec> nodes;
  for (const auto& [type, size] : typed.nodes) nodes.push_back({.name = type, .book = books.at(type)});
  const Graph from_papers(comm, nodes, edges, {.mode = HaloMode::sequential});
  Rows x;
  for (const std::string& type : graph.node_types())
    x[type] = Variable(rank_rows(random_tensor({typed.size(type), 4}, 5), books.at(type), comm.rank()), true);
  const auto sent = [&] { return comm.all_reduce(static_cast<std::int64_t>(comm.stats().bytes_sent)); };
  (void)conv(from_papers, x);  // makes what the graph keeps
  Tape tape;
  const auto start = sent(), idle = sent() - start, before = sent();
  Variable total;
  for (const auto& [type, y] : conv(from_papers, x)) total = total.defined() ? total + sum(y) : sum(y);
  const auto middle = sent();
  CHECK(middle - before - idle == papers * 4 * static_cast<std::int64_t>(sizeof(real)));
  tape.backward(total);
  CHECK(sent() - middle - idle == papers * 4 * static_cast<std::int64_t>(sizeof(real)));
}

TEST_CASE("rounded rows and gradients are near the exact ones, in every mode") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const auto books = typed_books(typed, comm.size()).front();
  const Outcome exact = train(comm, typed, books, {});
  for (const HaloFormat format : {HaloFormat::bf16, HaloFormat::int8}) {
    if (format == HaloFormat::int8 && sizeof(real) == sizeof(double)) continue;  // is refused
    for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
      CAPTURE(static_cast<int>(format));
      CAPTURE(static_cast<int>(mode));
      const HaloStep step(1, 1);
      const Outcome found = train(comm, typed, books, {.mode = mode, .halo_format = format});
      for (const auto& [type, size] : typed.nodes) {
        CHECK(relative_error(found.y.at(type), exact.y.at(type)) < 0.1);
        CHECK(relative_error(found.grad_x.at(type), exact.grad_x.at(type)) < 0.2);
        if (comm.size() > 1 && type == "paper" && mode == HaloMode::rematerialize)
          CHECK(comm.all_reduce(relative_error(found.y.at(type), exact.y.at(type)), ReduceOp::max) > 1e-6);
      }
      CHECK(found.counters == exact.counters);
    }
  }
}

TEST_CASE("in mode rematerialize, memory does not grow with the number of relations") {
  const Communicator comm = Communicator::world();
  constexpr Index nodes = 3000, width = 32;
  const PartitionBook book = PartitionBook::even(nodes, comm.size());
  const WholeGraph whole = random_graph("random", nodes, nodes, 9000, 1);  // the same for all: so is the halo
  const auto peak = [&](int relations, HaloMode mode) {
    std::vector<EdgeTypeSpec> edges;
    Generator gen(1);
    HeteroGraphConv conv;
    for (int r = 0; r < relations; ++r) {
      const std::string name = "r" + std::to_string(r);
      edges.push_back({.type = {"v", name, "v"}, .edges = edges_of_rank(comm, whole, book)});
      conv.emplace_back<FlatGAT>({"v", name, "v"}, std::pair(width, width), width / 2, 2, gen);
    }
    const Graph graph(comm, {{.name = "v", .book = book}}, std::move(edges), {.mode = mode});
    const Variable x(rank_rows(random_tensor({nodes, width}, 2), book, comm.rank()), true);
    std::size_t before = 0;
    for (int step = 0; step < 2; ++step) {  // the first one makes what graph and parameters keep
      before = live_bytes();
      reset_peak_bytes();
      Tape tape;
      const Variable y = conv(graph, {{"v", x}}).at("v");
      tape.backward(y, Tensor::full(y.shape(), 1));
    }
    return static_cast<double>(peak_bytes() - before);
  };
  CHECK(peak(8, HaloMode::rematerialize) < 1.05 * peak(2, HaloMode::rematerialize));
  CHECK(peak(8, HaloMode::sequential) > 1.5 * peak(2, HaloMode::sequential));  // which keeps what layers need
}

TEST_CASE("wrong types, missing rows and missing layers are refused on all ranks") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(8, comm.size());
  const Graph graph(comm, {{.name = "a", .book = book}, {.name = "b", .book = book}},
                    {{.type = {"a", "r", "b"}, .edges = {}}, {.type = {"b", "s", "b"}, .edges = {}}});
  Generator gen(1);
  HeteroGraphConv conv;
  conv.emplace_back<GraphConv>({"a", "r", "b"}, 2, 3, gen);
  const Index n = graph.num_nodes("a");
  const Variable rows(Tensor::full({n, 2}, 1));
  const bool bad = comm.rank() == comm.size() - 1;
  const auto refused = [&](const Rows& feats) {
    return thrown_by_all<Error>(comm, [&] { (void)conv(graph, feats); });
  };
  CHECK(refused({{"a", rows}, {"b", rows}}) == "there is no layer for the edge type 'b:s:b'");
  conv.emplace_back<GraphConv>({"b", "s", "b"}, 2, 4, gen);
  CHECK(refused(bad ? Rows{{"b", rows}} : Rows{{"a", rows}, {"b", rows}}) ==
        "there are no rows of 'a' for the edge type 'a:r:b'");
  CHECK(refused({{"a", Tensor(Shape{n + (bad ? 1 : 0), 2})}, {"b", rows}})
            .starts_with("rows of 'a' have shape ["));
  CHECK(refused({{"a", rows}, {"b", rows}}).starts_with("relations give results of shapes ["));
}
