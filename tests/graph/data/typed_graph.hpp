// SPDX-License-Identifier: MIT

/// A graph with two types of nodes, two of edges and data of every type, for tests of what keeps or moves it.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace sar::test {

constexpr std::array every_type{NpyType::float16, NpyType::float32, NpyType::float64,
                                NpyType::boolean, NpyType::uint8,   NpyType::int8,
                                NpyType::int16,   NpyType::int32,   NpyType::int64};

/// Bytes that depend on the row's original id and on the type, so that a row in a wrong place is noticed.
inline DataArray data_of(NpyType type, const std::vector<Index>& row_shape, const Array<Index>& ids) {
  DataArray data(type, row_shape, static_cast<Index>(ids.size()));
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (Index b = 0; b < data.row_bytes(); ++b)
      data.row(static_cast<Index>(i))[b] = static_cast<std::byte>(
          (31 * ids[i] + 7 * b + static_cast<Index>(type)) % (type == NpyType::boolean ? 2 : 251));
  return data;
}

/// Part `part` of `parts`. Of "user", part 1 has no nodes when there are several, of "item kind/1", part 0
/// has none when there are more than two. Some users have no edges, some edges are parallel, some are loops.
inline GraphData typed_part(int part, int parts) {
  const auto book = [&](Index nodes, int empty) {
    const PartitionBook even = PartitionBook::even(nodes, empty < parts ? parts - 1 : parts);
    std::vector<Index> offsets{0};
    for (int p = 0, q = 0; p < parts; ++p) offsets.push_back(p == empty ? offsets.back() : even.end(q++));
    return PartitionBook(offsets);
  };
  const auto nodes = [&](const std::string& name, Index count, int empty, Index stride) {
    NodeTypeData data;
    data.name = name;
    data.book = book(count, empty);
    for (Index v = data.book.begin(part); v < data.book.end(part); ++v)
      data.original_ids.push_back(v * stride % count);  // stride is prime to count
    return data;
  };
  GraphData graph;
  graph.name = "typed \"graph\"";
  graph.node_types.push_back(nodes("user", 23, parts > 1 ? 1 : parts, 5));
  graph.node_types.push_back(nodes("item kind/1", 17, parts > 2 ? 0 : parts, 3));
  for (const NpyType type : every_type) {
    NodeTypeData& users = graph.node_types[0];
    users.data[std::string("x ") + to_string(type)] = data_of(type, {}, users.original_ids);
    users.data[std::string("../y/") + to_string(type)] = data_of(type, {2, 3}, users.original_ids);
  }
  graph.node_types[1].data["nothing"] = data_of(NpyType::int16, {0}, graph.node_types[1].original_ids);

  const auto edges = [&](std::size_t src, const std::string& name, std::size_t dst, Index count) {
    const PartitionBook& src_book = graph.node_types[src].book;
    const PartitionBook& dst_book = graph.node_types[dst].book;
    EdgeTypeData data;
    data.src_type = graph.node_types[src].name;
    data.name = name;
    data.dst_type = graph.node_types[dst].name;
    data.num_edges = count;
    for (Index e = 0; e < count; ++e) {
      const Index pair = e % 11 == 10 ? e - 3 : e;  // parallel to an edge before
      const Index u = (pair * 13 + pair / 5) % (src_book.num_nodes() - 2);
      const Index v = pair % 13 == 0 && src == dst ? u : pair * 11 % (dst_book.num_nodes() - 2);
      if (v < dst_book.begin(part) || v >= dst_book.end(part)) continue;
      data.edges.src.push_back(u);
      data.edges.dst.push_back(v);
      data.edges.id.push_back(count - 1 - e);
    }
    return data;
  };
  graph.edge_types.push_back(edges(0, "buys", 1, 90));
  graph.edge_types.push_back(edges(0, "follows", 0, 61));
  graph.edge_types.push_back(edges(1, "..", 0, 0));
  for (const NpyType type : every_type)
    graph.edge_types[0].data[to_string(type)] = data_of(type, {3}, graph.edge_types[0].edges.id);
  graph.edge_types[1].data["weight"] = data_of(NpyType::float64, {}, graph.edge_types[1].edges.id);
  return graph;
}

/// All of a graph by original ids: what it means, wherever its parts are.
struct WholeTypedGraph {
  std::map<std::string, std::map<Index, std::string>> nodes;  ///< "type name" of a column -> id -> bytes
  std::map<std::string, std::map<Index, std::string>> edges;
  std::map<std::string, std::map<Index, std::pair<Index, Index>>> ends;  ///< edge type -> id -> original ids
  bool operator==(const WholeTypedGraph&) const = default;
};

inline void collect(const Communicator& comm, const std::string& name, const Array<Index>& ids,
                    const DataArray& column, std::map<std::string, std::map<Index, std::string>>& all) {
  const std::vector<Index> all_ids = comm.all_gather(std::span<const Index>(ids));
  const std::vector<std::byte> bytes = comm.all_gather(std::span<const std::byte>(column.bytes));
  const auto width = static_cast<std::size_t>(column.row_bytes());
  std::string key = name + " " + to_string(column.type);
  key += shape_to_string(column.row_shape);
  auto& rows = all[key];
  for (std::size_t i = 0; i < all_ids.size(); ++i)
    rows[all_ids[i]] = std::string(reinterpret_cast<const char*>(bytes.data()) + i * width, width);
}

/// Collective.
inline WholeTypedGraph gather_typed(const Communicator& comm, const GraphData& graph) {
  WholeTypedGraph whole;
  std::map<std::string, std::vector<Index>> original;
  for (const NodeTypeData& nodes : graph.node_types) {
    original[nodes.name] = comm.all_gather(std::span<const Index>(nodes.original_ids));
    for (const auto& [name, column] : nodes.data)
      collect(comm, nodes.name + " " + name, nodes.original_ids, column, whole.nodes);
  }
  for (const EdgeTypeData& type : graph.edge_types) {
    const auto all = [&](const Array<Index>& column) {
      return comm.all_gather(std::span<const Index>(column));
    };
    const std::vector<Index> src = all(type.edges.src), dst = all(type.edges.dst), id = all(type.edges.id);
    auto& ends = whole.ends[type.canonical_name()];
    for (std::size_t e = 0; e < id.size(); ++e)
      ends[id[e]] = {original[type.src_type].at(src[e]), original[type.dst_type].at(dst[e])};
    for (const auto& [name, column] : type.data)
      collect(comm, type.canonical_name() + " " + name, type.edges.id, column, whole.edges);
  }
  return whole;
}

}  // namespace sar::test
