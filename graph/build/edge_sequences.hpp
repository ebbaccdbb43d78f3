/// The in-edges of each destination in the order of their ids, as recurrent aggregators read them.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

namespace sar::inline SAR_PRECISION {

/// One sequence of edges for each destination, the longest first, stored step by step.
struct EdgeSequences {
  Array<Index> position;   ///< where the sequence of a local destination is; equal lengths stay in order
  Array<Index> step_rows;  ///< for each step t, how many sequences have more than t edges
  Array<Index> edges;      ///< local edges: the first of every sequence, then the second of every one, ...
};

/// Local; needs O(edges log(largest degree)) time.
[[nodiscard]] EdgeSequences edge_sequences(const GraphShardManager& graph);

}  // namespace sar
