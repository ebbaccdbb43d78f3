// SPDX-License-Identifier: MIT
#include <sar/graph/partition/partition_method.hpp>

namespace sar { inline namespace SAR_PRECISION {

const char* to_string(PartitionMethod method) noexcept {
  constexpr const char* names[] = {"contiguous", "random", "metis",
                                   "ldg",        "scotch", "auto"};  // in the order of PartitionMethod
  return names[static_cast<int>(method)];
}

bool has_metis() noexcept {
  return SAR_HAVE_METIS != 0;
}

PartitionMethod chosen_method(PartitionMethod method, std::int64_t num_edges,
                              std::int64_t most_gathered) noexcept {
  if (method != PartitionMethod::automatic) return method;
  if (num_edges <= most_gathered && has_metis()) return PartitionMethod::metis;
  return has_scotch() ? PartitionMethod::scotch : PartitionMethod::ldg;
}

}}  // namespace sar
