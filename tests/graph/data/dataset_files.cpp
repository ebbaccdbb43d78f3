// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"
#include "support/write_npy.hpp"

#include <sar/core/error.hpp>

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <utility>

namespace sar::test {
namespace {

/// The rows of all ranks in the order of the original ids.
template <class T>
std::vector<T> by_original_id(const Communicator& comm, const std::vector<Index>& ids,
                              std::span<const T> mine) {
  const std::vector<T> all = comm.all_gather(mine);
  const std::size_t width = ids.empty() ? 0 : all.size() / ids.size();
  REQUIRE(all.size() == width * ids.size());
  std::vector<T> sorted(all.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                sorted.begin() + ids[i] * static_cast<std::ptrdiff_t>(width));
  return sorted;
}

template <class T>
DataArray as_column(NpyType type, std::vector<Index> row_shape, std::span<const T> values, Index num_rows) {
  DataArray column(type, std::move(row_shape), num_rows);
  REQUIRE(column.bytes.size() == values.size_bytes());
  std::ranges::copy(std::as_bytes(values), column.bytes.begin());
  return column;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(const Communicator& comm) : comm_(comm) {
  if (comm.rank() == 0) {
    std::string name = (std::filesystem::temp_directory_path() / "sar_test_XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, "cannot make a directory ", name);
    path_ = name;
  }
  path_ = comm.broadcast(path_, 0);
}

TemporaryDirectory::~TemporaryDirectory() {
  comm_.barrier();
  if (comm_.rank() == 0) std::filesystem::remove_all(path_);
}

WholeDataset gather_graph(const Communicator& comm, const NodeData& data) {
  const int rank = comm.rank();
  const Index num_mine = data.book.num_nodes(rank);
  const auto mine = static_cast<std::size_t>(num_mine);
  REQUIRE(data.book.num_parts() == comm.size());
  REQUIRE(data.original_ids.size() == mine);
  const Tensor rows = data.input().value();
  REQUIRE(rows.num_rows() == num_mine);
  REQUIRE(data.labels.size() == mine);
  REQUIRE(data.train_mask.size() == mine);
  REQUIRE(data.val_mask.size() == mine);
  REQUIRE(data.test_mask.size() == mine);
  REQUIRE(data.edges.src.size() == data.edges.dst.size());
  REQUIRE(data.edges.src.size() == data.edges.id.size());

  const std::vector<Index> ids = comm.all_gather(std::span<const Index>(data.original_ids));
  REQUIRE(static_cast<Index>(ids.size()) == data.num_nodes());
  std::vector<Edge> edges;
  for (std::size_t e = 0; e < data.edges.src.size(); ++e) {
    REQUIRE(data.book.owner(data.edges.dst[e]) == rank);
    edges.push_back({ids.at(data.edges.src[e]), ids.at(data.edges.dst[e]), data.edges.id[e],
                     data.edges.weight.empty() ? 0 : double{data.edges.weight.at(e)}});
  }
  WholeDataset graph;
  graph.edges = comm.all_gather(std::span<const Edge>(edges));
  REQUIRE(static_cast<Index>(graph.edges.size()) == data.num_edges);
  std::sort(graph.edges.begin(), graph.edges.end());
  graph.width = data.num_features();
  const std::vector<double> features(rows.values().begin(), rows.values().end());
  graph.features = by_original_id(comm, ids, std::span<const double>(features));
  graph.labels = by_original_id(comm, ids, std::span<const std::int64_t>(data.labels));
  graph.train_mask = by_original_id(comm, ids, std::span<const std::uint8_t>(data.train_mask));
  graph.val_mask = by_original_id(comm, ids, std::span<const std::uint8_t>(data.val_mask));
  graph.test_mask = by_original_id(comm, ids, std::span<const std::uint8_t>(data.test_mask));
  return graph;
}

WholeDataset small_graph(bool weighted) {
  constexpr Index nodes = 37;
  std::mt19937 draw(5);
  WholeDataset graph;
  for (Index e = 0; e < 210; ++e) {
    Edge edge{static_cast<Index>(draw() % nodes), static_cast<Index>(draw() % nodes), e,
              weighted ? (draw() % 64) * 0.125 : 0};
    if (e % 9 == 0) edge.dst = edge.src;
    if (e % 7 == 6) {
      edge.src = graph.edges[static_cast<std::size_t>(e) / 2].src;
      edge.dst = graph.edges[static_cast<std::size_t>(e) / 2].dst;
    }
    graph.edges.push_back(edge);
  }
  graph.width = 5;
  for (Index v = 0; v < nodes; ++v) {
    for (Index f = 0; f < graph.width; ++f)
      graph.features.push_back(v == 11 ? 0 : static_cast<double>(draw() % 16) - 7.75);
    graph.labels.push_back(static_cast<std::int64_t>(draw() % 5) - 1);
    graph.train_mask.push_back(v % 3 == 0);
    graph.val_mask.push_back(v % 3 == 1);
    graph.test_mask.push_back(v % 3 == 2);
  }
  return graph;
}

void mark_as_fortran_order(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string head(128, ' ');
  file.read(head.data(), 128);
  head.replace(head.find("False"), 5, "True ");  // the header keeps its length
  file.seekp(0).write(head.data(), 128);
}

void write_dataset(const std::string& directory, const WholeDataset& graph, bool weighted) {
  const auto edges = static_cast<Index>(graph.edges.size());
  const auto nodes = static_cast<Index>(graph.labels.size());
  std::vector<Index> ends;
  std::vector<double> weights;
  for (const Edge& edge : graph.edges) ends.push_back(edge.src);
  for (const Edge& edge : graph.edges) ends.push_back(edge.dst);
  for (const Edge& edge : graph.edges) weights.push_back(edge.weight);
  write_npy<Index>(directory + "/edge_index.npy", std::array<Index, 2>{2, edges}, ends, NpyType::int64);
  if (weighted)
    write_npy<double>(directory + "/edge_weight.npy", std::array<Index, 1>{edges}, weights, NpyType::float32);
  write_npy<double>(directory + "/features.npy", std::array<Index, 2>{nodes, graph.width}, graph.features,
                    NpyType::float32);
  write_npy<std::int64_t>(directory + "/labels.npy", std::array<Index, 1>{nodes}, graph.labels,
                          NpyType::int64);
  const std::array<Index, 1> length{nodes};
  write_npy<std::uint8_t>(directory + "/train_mask.npy", length, graph.train_mask, NpyType::boolean);
  write_npy<std::uint8_t>(directory + "/val_mask.npy", length, graph.val_mask, NpyType::boolean);
  write_npy<std::uint8_t>(directory + "/test_mask.npy", length, graph.test_mask, NpyType::boolean);
}

GraphData to_graph_data(NodeData data) {
  GraphData graph;
  graph.name = std::move(data.name);
  NodeTypeData& nodes = graph.node_types.emplace_back();
  const auto count = static_cast<Index>(data.original_ids.size());
  nodes.book = std::move(data.book);
  nodes.original_ids = std::move(data.original_ids);
  nodes.ids_are_original = data.ids_are_original;
  if (data.sparse_features != nullptr)
    nodes.sparse["features"] = to_sparse_array(*data.sparse_features);
  else
    nodes.data["features"] = as_column(npy_real, {data.features.row_size()},
                                       std::span<const real>(std::as_const(data.features).values()), count);
  data.features = {};
  data.sparse_features = nullptr;
  if (data.targets.defined())
    nodes.data["labels"] =
        as_column(npy_real, {data.targets.row_size()}, std::span<const real>(data.targets.values()), count);
  else
    nodes.data["labels"] = as_column(NpyType::int64, {}, std::span<const std::int64_t>(data.labels), count);
  for (const auto& [name, mask] : {std::pair{"train_mask", &data.train_mask},
                                   {"val_mask", &data.val_mask},
                                   {"test_mask", &data.test_mask}})
    nodes.data[name] = as_column(NpyType::boolean, {}, std::span<const std::uint8_t>(*mask), count);
  EdgeTypeData& edges = graph.edge_types.emplace_back();
  edges.num_edges = data.num_edges;
  edges.edges = std::move(data.edges);
  if (!edges.edges.weight.empty())
    edges.data["weight"] =
        as_column(npy_real, {}, std::span<const real>(edges.edges.weight), edges.edges.size());
  edges.edges.weight = {};
  return graph;
}

}  // namespace sar::test
