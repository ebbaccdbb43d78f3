// SPDX-License-Identifier: MIT

/// Messages as rows of edges, for graphs with GraphOptions::reproducible: every sum over edges, forward and
/// backward, is then one of few exact sums. Memory: a row for each edge of this rank. For implementation
/// files.
#pragma once

#include <sar/graph/kernels/edge_batch.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/message.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Returns x[u] for the source u of each edge, in the graph's edge order. The gradient of x is
/// the exact sum over the out-edges of all ranks.
[[nodiscard]] Variable rows_of_sources(const GraphShardManager& graph, const Variable& x);

/// Collective. Returns x[v] for the destination v of each edge. The gradient of x is the exact sum over the
/// in-edges.
[[nodiscard]] Variable rows_of_destinations(const GraphShardManager& graph, const Variable& x);

/// Collective. Returns the message of each edge [edges, ...].
[[nodiscard]] Variable edge_rows_of(const GraphShardManager& graph, const Message& message);

/// Collective. Returns what `function` makes of all edges of this rank at once.
[[nodiscard]] Variable edge_rows_of(const GraphShardManager& graph, const MessageFunction& function);

}}  // namespace sar
