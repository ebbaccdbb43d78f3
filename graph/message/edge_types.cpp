// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/message/edge_types.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

std::size_t find_node_type(std::span<const std::string> types, const std::string& type) {
  const auto found = std::find(types.begin(), types.end(), type);
  if (found == types.end())
    throw InputError(concat("there is no node type '", type, "'; the node types are ", quoted_list(types)));
  return static_cast<std::size_t>(found - types.begin());
}

std::size_t find_edge_type(std::span<const EdgeType> types, std::string_view name) {
  std::vector<EdgeType> alike;
  std::size_t found = 0;
  for (std::size_t k = 0; k < types.size(); ++k) {
    const auto& [source, relation, destination] = types[k];
    const bool fits = name.size() == source.size() + relation.size() + destination.size() + 2 &&
                      name.substr(source.size() + 1, relation.size()) == relation;
    if (fits && name == types[k].canonical_name()) return k;
    if (relation != name) continue;
    alike.push_back(types[k]);
    found = k;
  }
  if (alike.empty())
    throw InputError(concat("there is no edge type '", name, "'; the edge types are ", quoted_list(types)));
  if (alike.size() > 1)
    throw InputError(concat("several edge types are called '", name, "': ", quoted_list(alike),
                            "; give the canonical name"));
  return found;
}

EdgeTypes EdgeTypes::checked(Index num_edges, Index num_types, const char* operation) const {
  constexpr Index most_types = Index{1} << 16;
  require<InputError>(num_types <= most_types, operation, " has ", num_types, " edge types, at most ",
                      most_types, " are possible");
  require<ShapeError>(size() == num_edges, operation, " got ", size(), " edge types for ", num_edges,
                      " edges");
  const auto check = [&](const auto& types) {
    for (const Index type : types)
      require<InputError>(0 <= type && type < num_types, operation, " got the edge type ", type,
                          ", there are ", num_types);
  };
  if (types_ != nullptr) {
    check(*types_);
    return *this;
  }
  check(ids_.span());
  Array<std::uint16_t> types(num_edges);
  std::transform(ids_.span().begin(), ids_.span().end(), types.begin(),
                 [](Index type) { return static_cast<std::uint16_t>(type); });
  return EdgeTypes(std::move(types));
}

std::vector<Index> EdgeTypes::of(const RowIds& edges) const {
  std::vector<Index> types;
  types.reserve(static_cast<std::size_t>(edges.size()));
  for (const Index edge : edges.span()) types.push_back(numbers()[edge]);
  return types;
}
}}  // namespace sar
