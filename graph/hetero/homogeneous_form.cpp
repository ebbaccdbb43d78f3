// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Variable HomogeneousForm::concat(const std::map<std::string, Variable>& rows) const {
  for (const auto& of_type : rows) (void)find_node_type(node_types, of_type.first);
  std::vector<Variable> parts;
  for (std::size_t t = 0; t < node_types.size(); ++t) {
    const auto found = rows.find(node_types[t]);
    require<InputError>(found != rows.end() && found->second.defined(),
                        "there are no rows of the node type '", node_types[t], "'");
    const Index expected = first_row[t + 1] - first_row[t];
    require<ShapeError>(found->second.num_rows() == expected, "rows of '", node_types[t], "' have shape ",
                        found->second.shape(), ", rank ", graph.comm().rank(), " has ", expected,
                        " nodes of this type");
    parts.push_back(found->second);
  }
  return parts.size() == 1 ? parts.front() : concat_rows(parts);
}

Variable HomogeneousForm::rows_of(const Variable& rows, const std::string& node_type) const {
  const std::size_t t = find_node_type(node_types, node_type);
  require<ShapeError>(rows.defined() && rows.num_rows() == first_row.back(), "rows of shape ", rows.shape(),
                      ", rank ", graph.comm().rank(), " has ", first_row.back(), " nodes of all types");
  return node_types.size() == 1 ? rows : slice_rows(rows, first_row[t], first_row[t + 1]);
}

Array<Index> HomogeneousForm::edge_rows(std::size_t edge_type, std::span<const Index> ids) const {
  const Array<Index>& known = relations[edge_type]->topology->edge_ids();
  const Array<Index>& order = edges_by_id[edge_type]->get();
  Array<Index> rows;
  rows.reserve(ids.size());
  for (const Index id : ids) {
    const auto row = std::ranges::lower_bound(order, id, {}, [&](Index edge) { return known[edge]; });
    require<InputError>(row != order.end() && known[*row] == id, "the edge type '",
                        edge_types[edge_type].canonical_name(), "' has no edge ", id, " on rank ",
                        graph.comm().rank());
    rows.push_back(*row);
  }
  return rows;
}

std::shared_ptr<const LazyArray> edges_in_order_of_ids(std::shared_ptr<const ShardedGraph> relation) {
  return std::make_shared<const LazyArray>([relation = std::move(relation)] {
    const Array<Index>& ids = relation->topology->edge_ids();
    Array<Index> order(ids.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::sort(order, {}, [&](Index edge) { return ids[edge]; });
    return order;
  });
}

Array<Index> HomogeneousForm::ntypes() const {
  Array<Index> types(static_cast<std::size_t>(first_row.back()));
  for (std::size_t t = 0; t < node_types.size(); ++t)
    std::fill(types.begin() + first_row[t], types.begin() + first_row[t + 1], static_cast<Index>(t));
  return types;
}

}}  // namespace sar
