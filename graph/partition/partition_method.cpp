#include <sar/graph/partition/partition_method.hpp>

namespace sar { inline namespace SAR_PRECISION {

const char* to_string(PartitionMethod method) noexcept {
  switch (method) {
    case PartitionMethod::contiguous:
      return "contiguous";
    case PartitionMethod::random:
      return "random";
    case PartitionMethod::metis:
      return "metis";
    case PartitionMethod::ldg:
      return "ldg";
    case PartitionMethod::scotch:
      break;
  }
  return "scotch";
}

bool has_metis() noexcept {
  return SAR_HAVE_METIS != 0;
}

}}  // namespace sar
