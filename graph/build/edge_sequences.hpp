/// The in-edges of each destination in the order of their ids: what recurrent aggregators read.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

namespace sar {

/// Sequences of edges, the longest first, laid out step by step.
struct EdgeSequences {
  Array<Index> position;   ///< of each local destination among the sequences; equal lengths by number
  Array<Index> step_rows;  ///< how many sequences have more than t edges, for each step t
  Array<Index> edges;      ///< local edges: the first ones of all sequences, then the second ones, ...
};

/// Local; needs O(edges log(largest degree)) time.
[[nodiscard]] EdgeSequences edge_sequences(const GraphShardManager& graph);

}  // namespace sar
