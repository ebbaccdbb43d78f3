// SPDX-License-Identifier: MIT

/// A graph with several types as a source, for tests of what reads, partitions or writes one.
#pragma once

#include "graph/data/typed_graph.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sar::test {

/// A GraphData that holds a whole graph in one part; each rank has it all.
class TypedSource : public GraphSource {
 public:
  TypedSource(const Communicator& comm, const GraphData& whole)
      : GraphSource(comm, "", whole.name), whole_(whole) {
    for (const NodeTypeData& type : whole_.node_types) {
      types_.node_types.push_back(
          {.name = type.name, .book = slices_of(type.num_nodes()), .unread = fields_of(type.data)});
      rows_of_nodes_.push_back(rows_of(type.original_ids));
    }
    for (const EdgeTypeData& type : whole_.edge_types) {
      types_.edge_types.push_back({.src_type = type.src_type,
                                   .name = type.name,
                                   .dst_type = type.dst_type,
                                   .num_edges = type.num_edges,
                                   .unread = fields_of(type.data)});
      rows_of_edges_.push_back(rows_of(type.edges.id));
    }
  }

  /// Dealt out like cards, so that no rank's ids are consecutive.
  [[nodiscard]] EdgeList read_edges(std::size_t type) override {
    const EdgeTypeData& data = whole_.edge_types.at(type);
    EdgeList edges;
    for (Index e = comm().rank(); e < data.edges.size(); e += comm().size()) {
      edges.src.push_back(whole_.node_type(data.src_type).original_ids[data.edges.src[e]]);
      edges.dst.push_back(whole_.node_type(data.dst_type).original_ids[data.edges.dst[e]]);
      edges.id.push_back(data.edges.id[e]);
    }
    return edges;
  }
  [[nodiscard]] DataArray read_node_data(std::size_t type, const std::string& field,
                                         std::span<const Index> nodes) override {
    return take(whole_.node_types.at(type).data.at(field), rows_of_nodes_.at(type), nodes);
  }
  [[nodiscard]] DataArray read_edge_data(std::size_t type, const std::string& field,
                                         std::span<const Index> edges) override {
    return take(whole_.edge_types.at(type).data.at(field), rows_of_edges_.at(type), edges);
  }

 private:
  static std::map<Index, Index> rows_of(const Array<Index>& ids) {
    std::map<Index, Index> rows;
    for (Index i = 0; i < std::ssize(ids); ++i) rows[ids[i]] = i;
    return rows;
  }
  static DataArray take(const DataArray& column, const std::map<Index, Index>& rows,
                        std::span<const Index> ids) {
    Array<Index> wanted;
    for (const Index id : ids) wanted.push_back(rows.at(id));
    return column.take(wanted);
  }

  GraphData whole_;
  std::vector<std::map<Index, Index>> rows_of_nodes_, rows_of_edges_;
};

/// A column of numbers, one a row.
template <class T>
DataArray column_of(NpyType type, const std::vector<T>& values) {
  DataArray column(type, {}, static_cast<Index>(values.size()));
  std::ranges::copy(std::as_bytes(std::span(values)), column.bytes.begin());
  return column;
}

/// 40 papers with labels and masks, 30 authors with a hub, 5 fields without data, no venues at all. Self
/// loops and parallel edges among the citations, isolated nodes of each type, and a relation without edges.
inline GraphData papers_and_authors() {
  GraphData graph;
  graph.name = "papers";
  const auto nodes = [&](const std::string& name, Index count) -> NodeTypeData& {
    NodeTypeData type;
    type.name = name;
    type.book = PartitionBook::even(count, 1);
    for (Index v = 0; v < count; ++v) type.original_ids.push_back(v);
    return graph.node_types.emplace_back(std::move(type));
  };
  const auto edges = [&](const std::string& src, const std::string& name, const std::string& dst, Index count,
                         const auto& ends) {
    EdgeTypeData type;
    type.src_type = src;
    type.name = name;
    type.dst_type = dst;
    type.num_edges = count;
    for (Index e = 0; e < count; ++e) {
      const auto [u, v] = ends(e);
      type.edges.src.push_back(u);
      type.edges.dst.push_back(v);
      type.edges.id.push_back(e);
    }
    graph.edge_types.push_back(std::move(type));
  };
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> train, val, test;
  for (Index v = 0; v < 40; ++v) {
    labels.push_back(v % 7 == 3 ? -1 : v % 3);
    train.push_back(v % 2 == 0);
    val.push_back(v % 4 == 1);
    test.push_back(v % 4 == 3);
  }
  NodeTypeData& papers = nodes("paper", 40);
  papers.data["features"] = data_of(NpyType::int16, {4}, papers.original_ids);
  papers.data["labels"] = column_of(NpyType::int64, labels);
  papers.data["train_mask"] = column_of(NpyType::boolean, train);
  papers.data["val_mask"] = column_of(NpyType::boolean, val);
  papers.data["test_mask"] = column_of(NpyType::boolean, test);
  NodeTypeData& authors = nodes("author", 30);
  authors.data["features"] = data_of(NpyType::int16, {3}, authors.original_ids);
  nodes("field", 5);
  nodes("venue", 0);
  edges("author", "writes", "paper", 90, [](Index e) {
    return std::pair{e % 3 == 0 ? 0 : e * 7 % 28, e * 11 % 38};
  });
  edges("paper", "cites", "paper", 70, [](Index e) {
    const Index u = e * 13 % 37;
    return std::pair{u, e % 9 == 0 ? u : (e / 2) * 5 % 37};
  });
  edges("paper", "has", "field", 40, [](Index e) { return std::pair{e, e % 4}; });
  edges("author", "edits", "paper", 0, [](Index) { return std::pair<Index, Index>{}; });
  edges("venue", "prints", "paper", 0, [](Index) { return std::pair<Index, Index>{}; });
  graph.edge_types[0].data["weight"] = data_of(NpyType::int8, {}, graph.edge_types[0].edges.id);
  graph.edge_types[1].data["year"] = data_of(NpyType::int32, {2}, graph.edge_types[1].edges.id);
  return graph;
}

}  // namespace sar::test
