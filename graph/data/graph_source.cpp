// SPDX-License-Identifier: MIT
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <algorithm>
#include <filesystem>

namespace sar { inline namespace SAR_PRECISION {

void GraphSource::require_plausible_sizes(const std::string& place) const {
  const Index edges = num_edges();
  const Index most = std::max(Index{1} << 24, edges > (Index{1} << 50) ? INT64_MAX : 64 * edges);
  for (const NodeTypeData& type : types_.node_types)
    require<InputError>(
        !type.unread.empty() || type.num_nodes() <= most, place, ": there are ", type.num_nodes(),
        types_.is_homogeneous() ? " nodes" : concat(" nodes of type ", type.name, " without data"), " for ",
        edges, " edges, expected at most ", most);
}

std::string last_part_of(const std::string& path) {
  std::filesystem::path last(path);
  if (!last.has_filename()) last = last.parent_path();
  return last.filename().string();
}

}}  // namespace sar
