// SPDX-License-Identifier: MIT

/// Factors that turn the sum over a relation's messages into their mean.
#pragma once

#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns, for each local edge in the graph's edge order, the factor of arXiv 1703.06103, as [local
/// edges, 1]:
///
///     c_e = 1 / |N_v^r|
///
/// where |N_v^r| is the number of in-edges of the edge's destination v that have the edge's type r.
/// edge_types: the type of each local edge; by default all edges have one type, so that the factors of a
/// node sum to 1. For RelGraphConv. In a block, only the block's edges count. Throws ShapeError if the
/// number of types is not the number of edges, InputError for a negative type.
[[nodiscard]] Tensor relation_norm(const GraphShardManager& graph, const EdgeTypes& edge_types = {});

}}  // namespace sar
