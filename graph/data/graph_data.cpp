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
  const auto found = std::ranges::find(node_types, type, &NodeTypeData::name);
  require<InputError>(found != node_types.end(), name, ": there is no node type ", type, ", expected one of ",
                      joined(node_types, &NodeTypeData::name));
  return *found;
}

void require_one_type(const std::string& name, std::size_t node_types, std::size_t edge_types) {
  require<InputError>(node_types == 1 && edge_types == 1, name, ": the graph has ", node_types,
                      " types of nodes and ", edge_types, " types of edges, expected one of each");
}

}}  // namespace sar
