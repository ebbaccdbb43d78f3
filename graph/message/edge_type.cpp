// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/message/edge_type.hpp>

#include <algorithm>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

std::string quoted_list(std::span<const std::string> names) {
  return names.empty() ? "none" : joined(names, [](const std::string& name) { return "'" + name + "'"; });
}

std::size_t find_node_type(std::span<const std::string> types, const std::string& type) {
  const auto found = std::find(types.begin(), types.end(), type);
  if (found == types.end())
    throw InputError(concat("there is no node type '", type, "'; the node types are ", quoted_list(types)));
  return static_cast<std::size_t>(found - types.begin());
}

std::size_t find_edge_type(std::span<const EdgeType> types, std::string_view name) {
  std::vector<std::string> all, alike;
  std::size_t found = 0;
  for (std::size_t k = 0; k < types.size(); ++k) {
    all.push_back(types[k].canonical_name());
    if (all.back() == name) return k;
    if (types[k].relation != name) continue;
    alike.push_back(all.back());
    found = k;
  }
  if (alike.empty())
    throw InputError(concat("there is no edge type '", name, "'; the edge types are ", quoted_list(all)));
  if (alike.size() > 1)
    throw InputError(concat("several edge types are called '", name, "': ", quoted_list(alike),
                            "; give the canonical name"));
  return found;
}

}}  // namespace sar
