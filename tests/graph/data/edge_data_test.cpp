// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"
#include "support/thrown.hpp"

#include <sar/data.hpp>
#include <sar/graph/data/graph_view.hpp>
#include <sar/models.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

using namespace sar;
using sar::test::thrown_by_all;
using sar::test::to_graph_data;

namespace {

double label_of(Index id) {
  return id % 7 == 3 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(id) / 4;
}

template <class T>
DataArray column(NpyType type, const Array<Index>& ids, const std::function<T(Index)>& value) {
  DataArray data(type, {}, std::ssize(ids));
  for (Index e = 0; e < std::ssize(ids); ++e) *reinterpret_cast<T*>(data.row(e)) = value(ids[e]);
  return data;
}

/// A graph whose edges have labels, types and three masks, which overlap.
GraphData graph_with_edge_data(const Communicator& comm) {
  GraphData graph = to_graph_data(make_sbm(comm, {.nodes = 60, .degree = 5, .classes = 2, .features = 3}));
  EdgeTypeData& type = graph.edge_types[0];
  const Array<Index>& ids = type.edges.id;
  type.data["labels"] = column<double>(NpyType::float64, ids, label_of);
  type.data["type"] =
      column<std::int32_t>(NpyType::int32, ids, [](Index id) { return std::int32_t(id % 3); });
  type.data["train_mask"] = column<std::uint8_t>(NpyType::boolean, ids, [](Index id) { return id % 2 == 0; });
  type.data["val_mask"] = column<std::uint8_t>(NpyType::uint8, ids, [](Index id) { return id % 3 == 0; });
  return graph;
}

EdgePart part_of(Index id) {
  return id % 2 == 0 ? EdgePart::train : id % 3 == 0 ? EdgePart::valid : EdgePart::none;
}

std::string error_of(const Communicator& comm, const std::string& field,
                     DataArray (*make)(const Array<Index>&), DatasetOptions options = {}) {
  GraphData graph = graph_with_edge_data(comm);
  graph.edge_types[0].data[field] = make(graph.edge_types[0].edges.id);
  options.edge_data = true;
  return thrown_by_all<InputError>(comm,
                                   [&] { static_cast<void>(to_node_data(comm, std::move(graph), options)); });
}

}  // namespace

TEST_CASE("data of edges stay with their edges, and edges that options add have none") {
  const Communicator comm = Communicator::world();
  for (const bool transforms : {false, true}) {
    GraphData graph = graph_with_edge_data(comm);
    const Index num_edges = comm.all_reduce(graph.edge_types[0].edges.size());
    const NodeData data =
        to_node_data(comm, std::move(graph),
                     {.add_reverse_edges = transforms, .add_self_loops = transforms, .edge_data = true});
    const EdgeData& edges = data.edge_data;
    CHECK(data.num_edges == (transforms ? 2 * num_edges + 60 : num_edges));
    CHECK(comm.all_reduce(edges.edges.size()) == num_edges);
    CHECK(edges.lists.empty());
    REQUIRE(std::ssize(edges.labels) == edges.edges.size());
    REQUIRE(std::ssize(edges.types) == edges.edges.size());
    REQUIRE(std::ssize(edges.parts) == edges.edges.size());
    for (Index e = 0; e < edges.edges.size(); ++e) {
      const Index id = edges.edges.id[e];
      CHECK(data.book.owner(edges.edges.dst[e]) == comm.rank());
      CHECK((edges.labels[e] == label_of(id) || (std::isnan(edges.labels[e]) && std::isnan(label_of(id)))));
      CHECK(edges.types[e] == id % 3);
      CHECK(edges.parts[e] == part_of(id));
    }
  }
}

TEST_CASE("fields of other names, and a split in the place of masks") {
  const Communicator comm = Communicator::world();
  GraphData graph = graph_with_edge_data(comm);
  const Array<Index> ids = graph.edge_types[0].edges.id;
  graph.edge_types[0].data["stage"] =
      column<float>(NpyType::float32, ids, [](Index id) { return static_cast<float>(id % 4 - 1); });
  const EdgeData edges =
      to_node_data(comm, std::move(graph),
                   {.fields = {{"edge_split", "stage"}, {"edge_labels", "type"}}, .edge_data = true})
          .edge_data;
  for (Index e = 0; e < edges.edges.size(); ++e) {
    const Index id = edges.edges.id[e];
    CHECK(edges.parts[e] == (id % 4 == 0 ? EdgePart::none : static_cast<EdgePart>(id % 4 - 1)));
    CHECK(edges.labels[e] == static_cast<double>(id % 3));
  }
}

TEST_CASE("whole numbers are weights, and what shall be labels is none") {
  const Communicator comm = Communicator::world();
  for (const bool are_labels : {false, true}) {
    GraphData graph = graph_with_edge_data(comm);
    graph.edge_types[0].data["weight"] = column<std::int32_t>(NpyType::int32, graph.edge_types[0].edges.id,
                                                              [](Index id) { return std::int32_t(id % 5); });
    DatasetOptions options;
    if (are_labels) options.fields = {{"edge_labels", "weight"}};
    options.edge_data = true;
    const NodeData data = to_node_data(comm, std::move(graph), options);
    const EdgeData& edges = data.edge_data;
    REQUIRE(data.edges.weight.size() == (are_labels ? 0 : data.edges.id.size()));
    for (Index e = 0; e < std::ssize(data.edges.weight); ++e)
      CHECK(data.edges.weight[e] == static_cast<real>(data.edges.id[e] % 5));
    for (Index e = 0; e < edges.edges.size() && are_labels; ++e)
      CHECK(edges.labels[e] == static_cast<double>(edges.edges.id[e] % 5));
  }
}

TEST_CASE("values that mean nothing are refused on all ranks") {
  const Communicator comm = Communicator::world();
  const auto fives = [](const Array<Index>& ids) {
    return column<std::int64_t>(NpyType::int64, ids, [](Index) { return 5; });
  };
  CHECK(error_of(comm, "split", fives).find(" is 5, expected 0 (training), 1 (validation), 2 (test) or -1") !=
        std::string::npos);
  const auto halves = [](const Array<Index>& ids) {
    return column<double>(NpyType::float64, ids, [](Index) { return 0.5; });
  };
  CHECK(error_of(comm, "type", halves).find(" is 0.5, expected a whole number from 0 to 2147483647") !=
        std::string::npos);
  CHECK(error_of(comm, "type", halves, {.edge_types = false}) == "nothing");
  const auto infinite = [](const Array<Index>& ids) {
    return column<double>(NpyType::float64, ids, [](Index) { return HUGE_VAL; });
  };
  CHECK(error_of(comm, "labels", infinite).find(" is inf, expected a finite number, or NaN") !=
        std::string::npos);
  CHECK(error_of(comm, "labels", infinite, {.edge_labels = false}) == "nothing");
  const auto huge = [](const Array<Index>& ids) {
    return column<double>(NpyType::float64, ids, [](Index) { return 1e300; });
  };
  CHECK((error_of(comm, "labels", huge) == "nothing") == (sizeof(real) == sizeof(double)));
  CHECK(error_of(comm, "val_mask", fives).find(" is 5, expected 0 or 1") != std::string::npos);
  const auto pairs = [](const Array<Index>& ids) {
    return DataArray(NpyType::float32, {2}, static_cast<Index>(ids.size()));
  };
  CHECK(error_of(comm, "labels", pairs) ==
        "sbm: edge data labels: a row has shape (2,), expected one number");
  CHECK(error_of(comm, "split", fives, {.fields = {{"edge_labels", "rating"}}})
            .find("expected rating among them, which shall be the edge_labels") != std::string::npos);
}
