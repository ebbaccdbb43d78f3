// SPDX-License-Identifier: MIT

// The list is sorted: O(L log L) time for L listed nodes, and a bisection for each row that is read.
#include "node_lists.hpp"

#include <sar/core/error.hpp>

#include <algorithm>

namespace sar::formats {

std::string mask_of_list(const std::string& name) {
  for (const char* part : {"train", "val", "test"})
    if (name == concat(part, "_nodes")) return concat(part, "_mask");
  return {};
}

std::vector<std::pair<std::string, std::string>> lists_last(const std::map<std::string, std::string>& files) {
  std::vector<std::pair<std::string, std::string>> ordered(files.begin(), files.end());
  std::ranges::stable_partition(ordered, [](const auto& file) {
    return mask_of_list(file.first.substr(file.first.find('/') + 1)).empty();
  });
  return ordered;
}

ListedNodes::ListedNodes(Array<std::int64_t> nodes, Index num_nodes, const std::string& place)
    : nodes_(std::move(nodes)) {
  const auto bad = std::ranges::find_if(nodes_, [&](Index node) { return node < 0 || node >= num_nodes; });
  require<InputError>(bad == nodes_.end(), place, ": element ", bad - nodes_.begin(), " is ",
                      bad == nodes_.end() ? 0 : *bad, ", expected the number of a node, ",
                      index_range(num_nodes));
  std::ranges::sort(nodes_);
  const auto twice = std::ranges::adjacent_find(nodes_);
  require<InputError>(twice == nodes_.end(), place, ": node ", twice == nodes_.end() ? 0 : *twice,
                      " is listed twice, expected each node once; zeros and ones for all nodes are a mask, "
                      "such as train_mask");
}

DataArray ListedNodes::read(const Communicator&, std::span<const Index> rows) const {
  DataArray mask(NpyType::uint8, {}, std::ssize(rows));
  for (std::size_t i = 0; i < rows.size(); ++i)
    mask.bytes[i] = static_cast<std::byte>(std::ranges::binary_search(nodes_, rows[i]) ? 1 : 0);
  return mask;
}

}  // namespace sar::formats
