// SPDX-License-Identifier: MIT

/// The in-edges of each destination as a sequence in the order of their ids, for recurrent aggregators.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/graph.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// One sequence of edges per destination, sorted by decreasing length and stored step by step.
struct EdgeSequences {
  Array<Index> position;   ///< index of each local destination's sequence; equal lengths keep their order
  Array<Index> step_rows;  ///< for each step t, the number of sequences with more than t edges
  Array<Index> edges;      ///< local edges: first edges of all sequences, then second edges, ...
};

/// Local. Returns the sequences. Time: O(edges log(largest degree) + n log(n)) for n destinations.
[[nodiscard]] EdgeSequences edge_sequences(const Graph& graph);
}}  // namespace sar
