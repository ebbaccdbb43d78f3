/// The factors with which messages of a relation are averaged.
#pragma once

#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

namespace sar::inline SAR_PRECISION {

/// [local edges, 1], in the graph's edge order: 1 / number of in-edges of the edge's type that reach its
/// destination, the c_e = 1 / |N_v^r| of arXiv 1703.06103. edge_types: the type of each local edge; none:
/// all edges are of one type, and a node's factors add up to 1. For RelGraphConv; in a block, of the block's
/// edges. Local. Throws ShapeError for another number of types than edges, InputError for a negative one.
[[nodiscard]] Tensor relation_norm(const GraphShardManager& graph, const EdgeTypes& edge_types = {});

}  // namespace sar
