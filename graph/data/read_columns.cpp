// SPDX-License-Identifier: MIT
#include <sar/core/half.hpp>
#include <sar/graph/data/read_columns.hpp>
#include <sar/graph/data/sparse_fields.hpp>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// 1 as an element of this type.
std::vector<std::byte> one(NpyType type) {
  std::vector<std::byte> bytes(element_bytes(type), std::byte{0});
  const auto set = [&](auto value) {
    std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof(value), bytes.data());
  };
  if (type == NpyType::float64) set(1.0);
  if (type == NpyType::float32) set(1.0f);
  if (type == NpyType::float16) set(float_to_half(1));
  if (!is_floating_point(type)) bytes[0] = std::byte{1};  // integers are little-endian
  return bytes;
}

/// The rows of the edges with these ids. Collective.
DataArray read_edge_rows(GraphSource& source, std::size_t type, const DataField& field,
                         const Array<Index>& ids, const DatasetOptions& options) {
  const Index num_edges = source.types().edge_types[type].num_edges;
  const Index first_loop = options.add_reverse_edges ? 2 * num_edges : num_edges;
  Array<Index> rows;
  rows.reserve(ids.size());
  for (const Index id : ids)
    if (id < first_loop) rows.push_back(id < num_edges ? id : id - num_edges);
  DataArray known = source.read_edge_data(type, field.name, rows);
  if (rows.size() == ids.size()) return known;

  DataArray data(field.type, field.row_shape, static_cast<Index>(ids.size()));
  const std::vector<std::byte> fill = field.name == "weight" || field.name == "edge_weight"
                                          ? one(field.type)
                                          : std::vector<std::byte>(element_bytes(field.type));
  Index next = 0;
  for (std::size_t e = 0; e < ids.size(); ++e) {
    std::byte* row = data.row(static_cast<Index>(e));
    if (ids[e] < first_loop)
      std::copy_n(known.row(next++), data.row_bytes(), row);
    else
      for (Index i = 0; i < data.row_size(); ++i)
        std::copy(fill.begin(), fill.end(), row + i * static_cast<Index>(fill.size()));
  }
  return data;
}

/// The rows of the nodes with these ids. Collective.
SparseArray read_sparse_rows(GraphSource& source, std::size_t type, const DataField& field,
                             std::span<const Index> ids) {
  return read_sparse(source.comm(), field, std::ssize(ids), source.place_of(field.name),
                     [&](std::span<const Index> rows) {
                       const auto some = rows.empty() ? ids.first(0) : ids.subspan(rows.front(), rows.size());
                       return source.read_node_data(type, field.name, some);
                     });
}

/// The place of the type of the source that the edges of a type come from.
std::size_t source_type_of(const GraphSource& source, const EdgeTypeData& type) {
  const auto& types = source.types().edge_types;
  auto found = std::ranges::find(types, type.canonical_name(), &EdgeTypeData::canonical_name);
  if (found == types.end())  // its reverse edges
    found = std::ranges::find_if(types, [&](const EdgeTypeData& other) {
      return other.src_type == type.dst_type && other.dst_type == type.src_type &&
             "rev_" + other.name == type.name;
    });
  return static_cast<std::size_t>(found - types.begin());
}

}  // namespace

void read_columns(GraphSource& source, const DatasetOptions& options, GraphData& graph) {
  for (std::size_t t = 0; t < graph.node_types.size(); ++t) {
    NodeTypeData& nodes = graph.node_types[t];
    for (const DataField& field : std::exchange(nodes.unread, {}))
      if (field.is_sparse)
        nodes.sparse.emplace(field.name, read_sparse_rows(source, t, field, nodes.original_ids));
      else
        nodes.data.emplace(field.name, source.read_node_data(t, field.name, nodes.original_ids));
  }
  for (EdgeTypeData& edges : graph.edge_types) {
    const std::size_t type = source_type_of(source, edges);
    for (const DataField& field : std::exchange(edges.unread, {}))
      edges.data.emplace(field.name, read_edge_rows(source, type, field, edges.edges.id, options));
  }
}

}}  // namespace sar
