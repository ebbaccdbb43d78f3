/// An order of the nodes of one part in which nodes that are used together lie together.
#pragma once

#include <sar/config.hpp>
#include <sar/core/memory.hpp>

#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION {

/// order[i] is the node that comes i-th. Clusters come one after the other, neighbouring clusters near each
/// other, and the nodes of a cluster by decreasing degree. src[e] -> dst[e] are the edges inside the part,
/// whose nodes are 0 .. num_nodes - 1. Directions and self loops make no difference. Deterministic. Local.
/// Time is linear in the edges, memory about 16 bytes an edge. Throws InputError for 2^32 nodes or more and
/// for an end that is no node.
///
/// Label propagation finds clusters of at most 1024 nodes, whose rows fit a second-level cache. It finds
/// clusters of clusters in the same way, each level eight times as large.
Array<Index> locality_order(Index num_nodes, std::span<const Index> src, std::span<const Index> dst);

}  // namespace sar
