// SPDX-License-Identifier: MIT

/// From a GraphData with fields of any type to NodeData.
#include "graph/data/dataset_files.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_view.hpp>
#include <sar/graph/data/splits.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

GraphData karate(const Communicator& comm) {
  return to_graph_data(make_karate(comm));
}

/// A column of one value for each node, by original id.
template <class T, class Value>
DataArray column(const NodeTypeData& nodes, NpyType type, const Value& value,
                 std::vector<Index> row_shape = {}) {
  DataArray data(type, std::move(row_shape), static_cast<Index>(nodes.original_ids.size()));
  for (std::size_t i = 0; i < nodes.original_ids.size(); ++i) {
    const T x = static_cast<T>(value(nodes.original_ids[i]));
    std::memcpy(data.row(static_cast<Index>(i)), &x, sizeof(x));
  }
  return data;
}

std::string refused(const Communicator& comm, const GraphData& graph) {
  return thrown_by_all<InputError>(comm, [&] { static_cast<void>(to_node_data(comm, graph)); });
}

}  // namespace

TEST_CASE("a GraphData takes the transforms of a dataset, where it is") {
  const Communicator comm = Communicator::world();
  for (int choice = 0; choice < 8; ++choice) {
    DatasetOptions options{(choice & 1) != 0, (choice & 2) != 0, (choice & 4) != 0, true};
    CAPTURE(choice);
    const NodeData data = to_node_data(comm, karate(comm), options);
    CHECK(gather_graph(comm, data) == gather_graph(comm, make_karate(comm, options)));
    CHECK(data.num_classes == 2);
  }
}

TEST_CASE("other names, shapes and types of features, labels, masks and weights") {
  const Communicator comm = Communicator::world();
  GraphData graph = karate(comm);
  NodeTypeData& nodes = graph.node_types[0];
  nodes.data.clear();
  nodes.data["feat"] = DataArray(NpyType::uint8, {2, 3}, static_cast<Index>(nodes.original_ids.size()));
  for (std::size_t i = 0; i < nodes.data["feat"].bytes.size(); ++i)
    nodes.data["feat"].bytes[i] =
        static_cast<std::byte>(nodes.original_ids[i / 6] + static_cast<Index>(i % 6));
  nodes.data["label"] = column<double>(nodes, NpyType::float64,
                                       [](Index v) {
                                         return v % 5 == 4 ? std::numeric_limits<double>::quiet_NaN()
                                                           : static_cast<double>(v % 5);
                                       },
                                       {1});
  nodes.data["val_mask"] =
      column<std::int32_t>(nodes, NpyType::int32, [](Index v) { return v % 3 == 0 ? 0 : 1; });
  EdgeTypeData& edges = graph.edge_types[0];
  edges.data["edge_weight"] = DataArray(NpyType::float32, {1}, edges.edges.size());
  for (Index e = 0; e < edges.edges.size(); ++e) {
    const auto weight = static_cast<float>(edges.edges.id[e]);
    std::memcpy(edges.data["edge_weight"].row(e), &weight, sizeof(weight));
  }
  const NodeData data = to_node_data(comm, graph, {.add_self_loops = true});
  CHECK(data.features.shape() == Shape{static_cast<Index>(data.original_ids.size()), 6});
  CHECK(data.num_classes == 4);
  for (std::size_t i = 0; i < data.original_ids.size(); ++i) {
    const Index v = data.original_ids[i];
    CHECK(data.features.row(static_cast<Index>(i))[5] == static_cast<real>(v + 5));
    CHECK(data.labels[i] == (v % 5 == 4 ? -1 : v % 5));
    CHECK(data.val_mask[i] == (v % 3 != 0));
    CHECK(data.train_mask[i] == 0);
  }
  for (std::size_t e = 0; e < data.edges.src.size(); ++e)
    CHECK(data.edges.weight[e] == static_cast<real>(data.edges.id[e] < 156 ? data.edges.id[e] : 1));
  CHECK(thrown_by_all<InputError>(comm, [&] { require_training_labels(comm, data); }) ==
        "karate: no node is a training node, expected a train_mask that selects at least one");
  graph.node_types[0].data.erase("label");
  CHECK(to_node_data(comm, graph).num_classes == 0);
}

TEST_CASE("fields that the options name") {
  const Communicator comm = Communicator::world();
  GraphData graph = karate(comm);
  DataColumns& nodes = graph.node_types[0].data;
  const NodeData expected = to_node_data(comm, graph);
  for (const auto& [from, to] :
       {std::pair("features", "x"), {"labels", "y"}, {"train_mask", "fit"}, {"test_mask", "held_out"}})
    nodes[to] = std::move(nodes.extract(from).mapped());
  nodes["features"] = DataArray(NpyType::float32, {2}, static_cast<Index>(expected.original_ids.size()));
  std::ranges::fill(nodes["features"].bytes, std::byte{0});
  graph.edge_types[0].data["cost"] = DataArray(NpyType::float32, {}, graph.edge_types[0].edges.size());
  std::ranges::fill(graph.edge_types[0].data["cost"].bytes, std::byte{0});
  const NodeData data = to_node_data(comm, graph,
                                     {.fields = {{"features", "x"},
                                                 {"labels", "y"},
                                                 {"train_mask", "fit"},
                                                 {"test_mask", "held_out"},
                                                 {"weight", "cost"}}});
  CHECK(std::ranges::equal(data.features.values(), expected.features.values()));
  CHECK(data.labels == expected.labels);
  CHECK(data.train_mask == expected.train_mask);
  CHECK(data.val_mask == expected.val_mask);
  CHECK(data.test_mask == expected.test_mask);
  CHECK(data.edges.weight == Array<real>(data.edges.src.size(), 0));
  const auto message = [&](DatasetOptions options) {
    return thrown_by_all<InputError>(comm, [&] { static_cast<void>(to_node_data(comm, graph, options)); });
  };
  CHECK(message({.fields = {{"labels", "z"}}}) ==
        "karate: the data are features, fit, held_out, val_mask, x, y, expected z among them, which shall be "
        "the labels");
  CHECK(message({.fields = {{"weight", "price"}}}) ==
        "karate: the data are cost, expected price among them, which shall be the weight");
  CHECK(message({.fields = {{"feature", "x"}}}) ==
        "karate: a field shall be the feature, expected features, labels, train_mask, val_mask, test_mask, "
        "weight, edge_labels, edge_type, edge_split, edge_train_mask, edge_val_mask or edge_test_mask");
}

TEST_CASE("graphs that are no NodeData") {
  const Communicator comm = Communicator::world();
  const GraphData sound = karate(comm);
  const auto with = [&](const std::function<void(GraphData&)>& change) {
    GraphData graph = sound;
    change(graph);
    return refused(comm, graph);
  };
  const auto labels = [&](NpyType type, const auto& value) {
    return with([&](GraphData& graph) {
      NodeTypeData& nodes = graph.node_types[0];
      nodes.data["labels"] = type == NpyType::float64 ? column<double>(nodes, type, value)
                                                      : column<std::int64_t>(nodes, type, value);
    });
  };
  REQUIRE(with([](GraphData&) {}) == "nothing");
  CHECK(with([](GraphData& g) { g.node_types.push_back(g.node_types[0]); }) ==
        "karate: the graph has 2 types of nodes and 1 types of edges, expected one of each");
  CHECK(with([](GraphData& g) { g.node_types[0].data.erase("features"); }) ==
        "karate: the data of the nodes are labels, test_mask, train_mask, val_mask, expected features (or "
        "feat) "
        "among them");
  CHECK(labels(NpyType::int64, [](Index v) {
          return v == 20 ? -2 : 0;
        }).starts_with("karate: labels: the label of node 20 is -2, expected a class from 0"));
  CHECK(labels(NpyType::float64, [](Index v) {
          return v == 33 ? 0.5 : 0.0;
        }).starts_with("karate: labels: the label of node 33 is 0.5, expected a whole number"));
  CHECK(labels(NpyType::float64, [](Index v) {
          return v == 3 ? 1e30 : 0.0;
        }).starts_with("karate: labels: the label of node 3 is 1e+30, expected a whole number"));
  CHECK(with([](GraphData& g) {
          NodeTypeData& nodes = g.node_types[0];
          nodes.data["features"] = column<float>(nodes, NpyType::float32, [](Index v) {
            return v == 7 ? std::numeric_limits<float>::infinity() : 0.0F;
          });
        }) == "karate: features: row 7, column 0 is inf, expected a finite number");
  CHECK(with([](GraphData& g) {
          g.node_types[0].data["train_mask"] =
              column<float>(g.node_types[0], NpyType::float32, [](Index v) { return v == 3 ? 2 : 1; });
        }) == "karate: train_mask: row 3 is 2, expected 0 or 1, one for each row");
  CHECK(with([](GraphData& g) {
          g.edge_types[0].data["weight"] = DataArray(NpyType::int64, {2}, g.edge_types[0].edges.size());
        }) == "karate: weight: a row has shape (2,), expected one number");
}

TEST_CASE("types by name") {
  GraphData graph;
  graph.name = "g";
  graph.node_types.push_back({.name = "a", .book = {}, .original_ids = {}, .data = {}});
  for (const char* dst : {"a", "b"}) {
    EdgeTypeData type;
    type.src_type = "a";
    type.name = "to";
    type.dst_type = dst;
    graph.edge_types.push_back(std::move(type));
  }
  CHECK(graph.node_type("a").name == "a");
  CHECK(thrown<InputError>([&] { static_cast<void>(graph.node_type("c")); }) ==
        "g: there is no node type c, expected one of a");
}
