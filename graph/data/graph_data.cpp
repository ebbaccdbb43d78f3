#include <sar/core/error.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

RowsById::RowsById(Array<Index> ids) : ids_(std::move(ids)), order_(ids_.size()) {
  std::iota(order_.begin(), order_.end(), Index{0});
  std::ranges::sort(order_, {}, [&](Index row) { return ids_[row]; });
}

Array<Index> RowsById::of(std::span<const Index> ids) const {
  Array<Index> rows;
  for (const Index id : ids)
    rows.push_back(*std::ranges::lower_bound(order_, id, {}, [&](Index row) { return ids_[row]; }));
  return rows;
}

const NodeTypeData& GraphData::node_type(const std::string& type) const {
  std::string names;
  for (const NodeTypeData& nodes : node_types) {
    if (nodes.name == type) return nodes;
    names += (names.empty() ? "" : ", ") + nodes.name;
  }
  throw InputError(concat(name, ": there is no node type ", type, ", expected one of ", names));
}

const EdgeTypeData& GraphData::edge_type(const std::string& type) const {
  std::string names;
  const EdgeTypeData* found = nullptr;
  for (const EdgeTypeData& edges : edge_types) {
    if (edges.canonical_name() == type) return edges;
    names += (names.empty() ? "" : ", ") + edges.canonical_name();
    if (edges.name != type) continue;
    require<InputError>(found == nullptr, name, ": several edge types are named ", type,
                        ", expected a name such as ", edges.canonical_name());
    found = &edges;
  }
  require<InputError>(found != nullptr, name, ": there is no edge type ", type, ", expected one of ", names);
  return *found;
}

void require_one_type(const std::string& name, std::size_t node_types, std::size_t edge_types) {
  require<InputError>(node_types == 1 && edge_types == 1, name, ": the graph has ", node_types,
                      " types of nodes and ", edge_types, " types of edges, expected one of each");
}

}}  // namespace sar
