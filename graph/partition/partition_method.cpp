#include <sar/graph/partition/partition_method.hpp>

namespace sar { inline namespace SAR_PRECISION {

const char* to_string(PartitionMethod method) noexcept {
  constexpr const char* names[] = {"contiguous", "random", "metis", "ldg",
                                   "scotch"};  // in the order of PartitionMethod
  return names[static_cast<int>(method)];
}

bool has_metis() noexcept {
  return SAR_HAVE_METIS != 0;
}

}}  // namespace sar
