// SPDX-License-Identifier: MIT

/// Lists of the nodes of a split, in place of masks.
#pragma once

#include "field_data.hpp"

#include <sar/core/memory/memory.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sar::formats {

/// Local. Returns the mask that a list with this name becomes: train_mask of train_nodes, val_mask of
/// val_nodes, test_mask of test_nodes; nothing for other names.
std::string mask_of_list(const std::string& name);

/// Local. Returns the pairs NAME=FILE of --node-data, lists of nodes last: the rows of other files may say
/// how many nodes there are. A name may begin with a type and a slash.
std::vector<std::pair<std::string, std::string>> lists_last(const std::map<std::string, std::string>& files);

/// A mask: 1 for the nodes of a list, 0 for all others. Each rank keeps the list, 8 bytes a node of it.
class ListedNodes : public FieldData {
 public:
  /// Local. Throws InputError, beginning with `place`, for a number that is none of `num_nodes` nodes, and
  /// for a node that is listed twice.
  ListedNodes(Array<std::int64_t> nodes, Index num_nodes, const std::string& place);
  [[nodiscard]] DataArray read(const Communicator& comm, std::span<const Index> rows) const override;

 private:
  Array<std::int64_t> nodes_;  // in increasing order
};

}  // namespace sar::formats
