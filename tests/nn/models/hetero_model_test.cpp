// SPDX-License-Identifier: MIT

/// Networks of descriptions on graphs with types: the same on any number of ranks, written and read, wrong
/// input.
#include "graph/data/dataset_files.hpp"
#include "graph/hetero/golden_typed_graph.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/models/graph_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

using Rows = GraphModel::Rows;

ModelDescription description_of(const std::string& type) {
  ModelDescription d{.type = type, .in_feats = 4, .hidden = 6, .out_feats = 3, .layers = 2};
  d.heads = 2;
  d.node_types = {"paper", "author", "field"};
  for (const auto& [edge_type, edges] : typed_graph().relations) d.edge_types.push_back(edge_type);
  d.num_rels = std::ssize(d.edge_types);
  d.inputs = {{"paper", 5}, {"field", 2}};
  d.norm = "layer";
  d.activation = "tanh";  // smooth, for difference quotients
  return d;
}

/// The types of networks for graphs with types.
std::vector<std::string> typed_types() {
  std::vector<std::string> names;
  for (const ModelType& type : model_types())
    if (type.has_relations) names.push_back(type.name);
  return names;
}

Rows inputs(const TypedGraph& typed, const std::map<std::string, PartitionBook>& books, int rank) {
  Rows x;
  std::uint64_t stream = 1;
  for (const auto& [type, size] : typed.nodes) {
    const Index width = type == "paper" ? 5 : type == "field" ? 2 : 4;
    x[type] = Variable(rank_rows(random_tensor({size, width}, stream++), books.at(type), rank), true);
  }
  return x;
}

}  // namespace

TEST_CASE("a GraphModel is the same on any number of ranks, and its gradients are finite differences") {
  const Communicator comm = Communicator::world(), self = Communicator::self();
  const TypedGraph typed = typed_graph();
  for (const std::string& type : typed_types()) {
    CAPTURE(type);
    Generator gen(1);
    GraphModel model(description_of(type), comm, gen);
    const auto whole = typed_books(typed, 1).front();
    const Rows want = model(shard(self, typed, whole), inputs(typed, whole, 0));
    for (const auto& books : typed_books(typed, comm.size())) {
      const Graph graph = shard(comm, typed, books);
      const Rows x = inputs(typed, books, comm.rank());
      const Rows y = model(graph, x);
      for (const auto& [name, size] : typed.nodes)
        CHECK(error_of_rows(y.at(name).value(), want.at(name).value(), books.at(name), comm.rank()) <
              10 * tolerance());
      CHECK_NOTHROW(gradcheck([&](const std::vector<Variable>&) { return model(graph, x).at("paper"); },
                              {x.at("paper"), x.at("author")},
                              {.tolerance = sizeof(real) == 8 ? 1e-6 : 2e-2,
                               .directions = 2,
                               .sum_over_ranks = [&](double value) { return comm.all_reduce(value); }}));
    }
  }
}

// y_v = sum over r of 1 / |in-edges of type r| sum w_e x_u W_r + b + x_v W_0, in double precision.
TEST_CASE("rgcn is the weighted mean of each relation") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  ModelDescription d = description_of("rgcn");
  d.layers = 1;
  d.inputs.clear();
  Generator gen(3);
  GraphModel model(d, comm, gen);
  const auto weight_of_edge = [](Index id) { return 0.25 * static_cast<double>(1 + id % 7); };
  std::map<std::string, Tensor> parameters;
  for (const NamedParameter& each : model.named_parameters()) parameters[each.name] = each.parameter.value();
  const Tensor w = parameters.at("layers.0.linear_r.W"), loop = parameters.at("layers.0.loop_weight"),
               bias = parameters.at("layers.0.h_bias");
  const auto value = [](const Tensor& x, Index i) { return static_cast<double>(x.data()[i]); };
  std::map<std::string, Tensor> x;
  std::map<std::string, std::vector<double>> want;
  const auto add_product = [&](const Tensor& row_of, Index row, const Tensor& matrix, Index first,
                               double factor, std::vector<double>& to, Index place) {
    for (Index i = 0; i < 4; ++i)
      for (Index j = 0; j < 3; ++j)
        to[static_cast<std::size_t>(place * 3 + j)] +=
            factor * value(row_of, row * 4 + i) * value(matrix, first + i * 3 + j);
  };
  std::uint64_t stream = 20;
  for (const auto& [type, size] : typed.nodes) {
    x[type] = random_tensor({size, 4}, stream++);
    std::vector<double>& y = want[type];
    for (Index v = 0; v < size; ++v) {
      for (Index j = 0; j < 3; ++j) y.push_back(value(bias, j));
      add_product(x[type], v, loop, 0, 1, y, v);
    }
  }
  for (std::size_t r = 0; r < typed.relations.size(); ++r) {
    const auto& [type, edges] = typed.relations[r];
    for (std::size_t e = 0; e < edges.src.size(); ++e) {
      const auto in_edges = static_cast<double>(std::ranges::count(edges.dst, edges.dst[e]));
      add_product(x[type.source], edges.src[e], w, static_cast<Index>(r) * 12,
                  weight_of_edge(static_cast<Index>(e)) / in_edges, want[type.destination], edges.dst[e]);
    }
  }
  for (const auto& books : typed_books(typed, comm.size())) {
    std::vector<NodeTypeSpec> nodes;
    for (const auto& [type, size] : typed.nodes) nodes.push_back({.name = type, .book = books.at(type)});
    std::vector<EdgeTypeSpec> relations;
    for (const auto& [type, whole] : typed.relations) {
      relations.push_back({.type = type, .edges = edges_of_rank(comm, whole, books.at(type.destination))});
      EdgeList& edges = relations.back().edges;
      for (const Index id : edges.id) edges.weight.push_back(static_cast<real>(weight_of_edge(id)));
    }
    const Graph graph(comm, nodes, relations);
    Rows mine;
    for (const auto& [type, rows] : x) mine[type] = rank_rows(rows, books.at(type), comm.rank());
    const Rows y = model(graph, mine);
    for (const auto& [type, size] : typed.nodes) {
      const Index first = books.at(type).begin(comm.rank());
      for (Index i = 0; i < y.at(type).value().size(); ++i)
        CHECK(value(y.at(type).value(), i) ==
              doctest::Approx(want[type][static_cast<std::size_t>(first * 3 + i)])
                  .epsilon(sizeof(real) == 8 ? 1e-11 : 2e-4));
    }
  }
}

TEST_CASE("the description of a network with types is written and read") {
  for (const std::string& type : typed_types()) {
    const ModelDescription d = description_of(type);
    const ModelDescription read = ModelDescription::from_json(d.to_json());
    CHECK(read.to_json() == d.to_json());
    CHECK(read.node_types == d.node_types);
    CHECK(read.edge_types == d.edge_types);
    CHECK(read.inputs == d.inputs);
    CHECK(read.num_rels == d.num_rels);
  }
}

TEST_CASE("save_model and load_model keep a network and its results") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const auto books = typed_books(typed, comm.size()).front();
  const Graph graph = shard(comm, typed, books);
  const Rows x = inputs(typed, books, comm.rank());
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/model.safetensors";
  for (const std::string& type : typed_types()) {
    CAPTURE(type);
    Generator gen(5);
    ModelDescription d = description_of(type);
    d.dropout = 0.5;  // a loaded network predicts
    GraphModel model(d, comm, gen);
    model.eval();
    save_model(comm, path, model);
    const auto loaded = load_model(comm, path);
    CHECK(loaded->description().to_json() == model.description().to_json());
    const Rows y = (*loaded)(graph, x);
    for (const auto& [name, rows] : model(graph, x)) {
      const Tensor found = y.at(name).value(), wanted = rows.value();
      CHECK(std::ranges::equal(std::as_const(found).values(), std::as_const(wanted).values()));
    }
  }
}

TEST_CASE("descriptions and graphs that do not fit are refused") {
  const auto error_of = [](const std::string& text) {
    return thrown<InputError>([&] { (void)ModelDescription::from_json(text); });
  };
  const std::string begin = R"({"sar_model": 1, "type": "rgcn", "in_feats": 4, "out_feats": 2, )";
  CHECK(error_of(begin + R"("node_types": ["a"]})").find("edge_types") != std::string::npos);
  CHECK(error_of(begin + R"("node_types": ["a"], "edge_types": [["a", "r"]]})")
            .ends_with("has 2 names, expected source type, relation and destination type"));
  CHECK(error_of(begin + R"("node_types": ["a"], "edge_types": [["a", "r", "b"]]})") ==
        "the description: there is no node type 'b', expected a");
  CHECK(error_of(begin + R"("node_types": ["a", "a"], "edge_types": []})")
            .ends_with("has 'a' twice, expected names that differ"));
  CHECK(error_of(begin + R"("node_types": ["a"], "edge_types": [["a", "r", "a"], ["a", "r", "a"]]})")
            .ends_with("has 'a:r:a' twice, expected types that differ"));
  CHECK(error_of(begin + R"("node_types": ["a"], "edge_types": [], "inputs": {"a": 0}})") ==
        "the description.inputs.a is 0, expected a whole number from 1 to 16777216");

  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const auto books = typed_books(typed, comm.size()).front();
  const Graph graph = shard(comm, typed, books);
  Generator gen(1);
  GraphModel untyped({.in_feats = 2, .out_feats = 2}, comm, gen);
  CHECK(thrown<InputError>([&] { (void)untyped(graph, inputs(typed, books, comm.rank())); }) ==
        "a network of type sage on rows of node types, expected one matrix, because it reads no relations");
  CHECK(thrown_by_all<InputError>(comm, [&] { (void)untyped(graph, Variable(Tensor::zeros({3, 2}))); })
            .starts_with("a network of type sage, which reads no relations, on a graph of the edge types "));
  ModelDescription d = description_of("rgcn");
  GraphModel model(d, comm, gen);
  CHECK(thrown<InputError>([&] { (void)model(graph, Variable(Tensor::zeros({3, 2}))); }) ==
        "a network of type rgcn, which reads relations, on one matrix, expected rows of each node type");
  const bool bad = comm.rank() == comm.size() - 1;
  Rows x = inputs(typed, books, comm.rank());
  if (bad) x.erase("author");
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)model(graph, x);
        }).starts_with("a network of type rgcn without rows of 'author', expected ["));
  x = inputs(typed, books, comm.rank());
  if (bad) x["author"] = x.at("paper");
  CHECK(thrown_by_all<ShapeError>(comm, [&] {
          (void)model(graph, x);
        }).starts_with("a network of type rgcn on rows of 'author' of shape ["));
  x = inputs(typed, books, comm.rank());
  if (bad) x["venue"] = x.at("paper");
  CHECK(thrown_by_all<InputError>(comm, [&] { (void)model(graph, x); }).find("venue") != std::string::npos);
  // edge weights, which HGTConv does not read
  std::vector<NodeTypeSpec> nodes;
  for (const auto& [type, size] : typed.nodes) nodes.push_back({.name = type, .book = books.at(type)});
  std::vector<EdgeTypeSpec> relations;
  for (const auto& [type, whole] : typed.relations)
    relations.push_back({.type = type, .edges = edges_of_rank(comm, whole, books.at(type.destination))});
  relations[0].edges.weight.assign(relations[0].edges.id.size(), real(0.5));
  const Graph weighted(comm, nodes, relations);
  GraphModel hgt(description_of("hgt"), comm, gen);
  x = inputs(typed, books, comm.rank());
  CHECK(thrown_by_all<InputError>(comm, [&] { (void)hgt(weighted, x); }) ==
        "a network of type hgt on a graph with edge weights, which HGTConv does not read, expected a graph "
        "without weights, or a network of type rgcn, hetero-sage or hetero-gat");
  CHECK_NOTHROW((void)model(weighted, x));
  std::swap(d.node_types[0], d.node_types[1]);
  GraphModel other(d, comm, gen);
  CHECK(thrown_by_all<InputError>(comm, [&] { (void)other(graph, inputs(typed, books, comm.rank())); })
            .starts_with("a network of type rgcn on a graph of the node types paper, author, field, expected "
                         "author, paper, field"));
  d = description_of("rgcn");
  std::swap(d.edge_types[0], d.edge_types[1]);
  GraphModel reordered(d, comm, gen);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)reordered(graph, inputs(typed, books, comm.rank()));
        }).starts_with("a network of type rgcn on a graph of the edge types "));
}
