// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

RowsById::RowsById(Array<Index> ids) : ids_(std::move(ids)), order_(consecutive(0, std::ssize(ids_))) {
  std::ranges::sort(order_, {}, [&](Index row) { return ids_[row]; });
}

Array<Index> RowsById::of(std::span<const Index> ids) const {
  Array<Index> rows;
  for (const Index id : ids)
    rows.push_back(*std::ranges::lower_bound(order_, id, {}, [&](Index row) { return ids_[row]; }));
  return rows;
}

std::vector<DataField> fields_of(const NodeTypeData& nodes) {
  std::vector<DataField> fields = fields_of(nodes.data);
  for (const auto& [name, column] : nodes.sparse)
    fields.push_back({name, column.type, column.row_shape, /*is_sparse=*/true});
  std::ranges::sort(fields, {}, &DataField::name);
  return fields;
}

std::size_t GraphData::place_of(const std::string& type) const {
  const auto found = std::ranges::find(node_types, type, &NodeTypeData::name);
  if (found == node_types.end())
    throw InputError(concat(name, ": there is no node type ", type, ", expected one of ",
                            joined(node_types, &NodeTypeData::name)));
  return static_cast<std::size_t>(found - node_types.begin());
}

std::size_t GraphData::edge_place_of(const std::string& type) const {
  const auto canonical = std::ranges::find(edge_types, type, &EdgeTypeData::canonical_name);
  const auto found =
      canonical != edge_types.end() ? canonical : std::ranges::find(edge_types, type, &EdgeTypeData::name);
  const bool is_one =
      canonical != edge_types.end() || std::ranges::count(edge_types, type, &EdgeTypeData::name) == 1;
  if (found == edge_types.end() || !is_one)
    throw InputError(concat(
        name, found == edge_types.end() ? ": there is no edge type " : ": there are several edge types ",
        type, ", expected one of ", joined(edge_types, &EdgeTypeData::canonical_name)));
  return static_cast<std::size_t>(found - edge_types.begin());
}

Index GraphData::num_nodes() const {
  return offsets_of_sizes(node_types, &NodeTypeData::num_nodes).back();
}
Index GraphData::num_edges() const {
  return offsets_of_sizes(edge_types, &EdgeTypeData::num_edges).back();
}

std::string GraphData::describe() const {
  const auto list = [](const char* begin, const auto& read, const auto& type, const char* end) {
    std::string names;
    const auto add = [&](const DataField& field) { names += (names.empty() ? begin : " ") + field.name; };
    std::ranges::for_each(type.unread, add);
    std::ranges::for_each(read, add);
    return names.empty() ? names : names + end;
  };
  if (is_homogeneous())
    return concat(num_nodes(), " nodes, ", num_edges(), " edges",
                  list("; nodes: ", fields_of(node_types[0]), node_types[0], ""),
                  list("; edges: ", fields_of(edge_types[0].data), edge_types[0], ""));
  const auto of_nodes = [&](const NodeTypeData& type) {
    return concat(type.name, " ", type.num_nodes(), " nodes", list(" (", fields_of(type), type, ")"));
  };
  const auto of_edges = [&](const EdgeTypeData& type) {
    return concat(type.canonical_name(), " ", type.num_edges, " edges",
                  list(" (", fields_of(type.data), type, ")"));
  };
  return concat(joined(node_types, of_nodes), edge_types.empty() ? "" : "; ", joined(edge_types, of_edges));
}

void require_one_type(const std::string& name, std::size_t node_types, std::size_t edge_types) {
  require<InputError>(node_types == 1 && edge_types == 1, name, ": the graph has ", node_types,
                      " types of nodes and ", edge_types, " types of edges, expected one of each");
}

void require_nodes_for_ranks(const std::string& name, Index num_nodes, int ranks) {
  require<InputError>(num_nodes > 0 && num_nodes >= ranks, name, ": the graph has ", num_nodes,
                      " nodes, expected at least one for each of the ", ranks, " ranks");
}

NodeData without_columns(GraphData& graph) {
  NodeTypeData& nodes = graph.node_types[0];
  NodeData data;
  data.name = graph.name;
  data.book = nodes.book;
  data.original_ids = std::move(nodes.original_ids);
  data.ids_are_original = nodes.ids_are_original;
  data.edges = std::move(graph.edge_types[0].edges);
  data.num_edges = graph.edge_types[0].num_edges;
  return data;
}

Graph construct_full_graph(const Communicator& comm, NodeData& data, const GraphOptions& options) {
  return comm.agree([&] {
    Graph graph(comm, data.book, data.book, std::exchange(data.edges, {}), true, options, data.original_ids,
                data.original_ids);
    release_cached_memory();
    return graph;
  });
}
}}  // namespace sar
