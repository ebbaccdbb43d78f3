/// EdgeList: edges as columns, before they are a graph.
#pragma once

#include <sar/core/memory.hpp>

namespace sar::inline SAR_PRECISION {

/// In-edges of this worker's nodes, in no particular order. Ids are those of the partitioned graph
/// (PartitionBook); `id` names the edge in the whole graph: unique, and the same for every partitioning.
struct EdgeList {
  Array<Index> src;
  Array<Index> dst;
  Array<Index> id;
  Array<real> weight;  ///< empty, or one per edge

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(src.size()); }
};

}  // namespace sar
