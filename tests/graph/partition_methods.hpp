// SPDX-License-Identifier: MIT

/// All ways to divide a graph that this build has.
#pragma once

#include <sar/graph/partition/partition_method.hpp>

#include <vector>

namespace sar::test {

inline std::vector<PartitionMethod> all_partition_methods() {
  std::vector<PartitionMethod> methods{PartitionMethod::contiguous, PartitionMethod::random,
                                       PartitionMethod::ldg};
  if (has_metis()) methods.push_back(PartitionMethod::metis);
  if (has_scotch()) methods.push_back(PartitionMethod::scotch);
  return methods;
}

}  // namespace sar::test
