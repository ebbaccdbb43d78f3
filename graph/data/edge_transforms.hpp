/// How the edges of a graph change while it is loaded or partitioned.
#pragma once

#include <sar/comm/collective_call.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The options of DatasetOptions and PartitionGraphOptions that change edges.
struct EdgeTransforms {
  bool add_reverse_edges = false;
  bool add_self_loops = false;
  bool remaining_self_loops = false;
  bool drop_duplicates = false;
};

template <class Options>
[[nodiscard]] EdgeTransforms transforms_of(const Options& options) {
  return {.add_reverse_edges = options.add_reverse_edges,
          .add_self_loops = options.add_self_loops,
          .remaining_self_loops = options.remaining_self_loops,
          .drop_duplicates = options.drop_duplicates};
}

inline void add_arguments(CollectiveCall& call, const EdgeTransforms& transforms) {
  call.equal("add_reverse_edges", transforms.add_reverse_edges)
      .equal("add_self_loops", transforms.add_self_loops)
      .equal("remaining_self_loops", transforms.remaining_self_loops)
      .equal("drop_duplicates", transforms.drop_duplicates);
}

}}  // namespace sar
