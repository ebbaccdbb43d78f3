// SPDX-License-Identifier: MIT

/// An order of the nodes of one part that places nodes that are used together next to each other.
#pragma once

#include <sar/config.hpp>
#include <sar/core/memory/memory.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns the order: order[i] is the i-th node. Clusters are contiguous, and so are clusters of
/// clusters; the nodes of a cluster are sorted by decreasing degree. src[e] -> dst[e] are the edges inside
/// the part, whose nodes are 0 .. num_nodes - 1. Directions and self loops are ignored. Deterministic. Time
/// is linear in the edges, memory about 16 bytes per edge. Throws InputError for 2^32 nodes or more and for
/// an end that is not a node.
///
/// Algorithm: label propagation finds clusters of at most 1024 nodes, whose rows fit in the L2 cache. The
/// clusters are contracted to nodes, and the same algorithm clusters these; the size limit grows by a factor
/// of eight per level.
Array<Index> locality_order(Index num_nodes, std::span<const Index> src, std::span<const Index> dst);

}}  // namespace sar
