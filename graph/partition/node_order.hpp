/// An order of the nodes of one part in which nodes that are used together lie together.
#pragma once

#include <sar/config.hpp>
#include <sar/core/memory.hpp>

#include <cstdint>
#include <span>

namespace sar {

/// order[i] is the node that comes i-th: clusters one after the other, neighbouring clusters near each other,
/// inside a cluster by decreasing degree. src[e] -> dst[e] are the edges inside the part, nodes 0 ..
/// num_nodes - 1; directions do not matter, self loops neither. Deterministic. Local; time linear in edges;
/// memory about 16 bytes an edge. Throws InputError for 2^32 nodes or more and for an end that is no node.
///
/// Clusters are found by label propagation with at most 1024 nodes in one, whose rows fit a second-level
/// cache; then clusters of clusters in the same way, each level eight times as large.
Array<Index> locality_order(Index num_nodes, std::span<const Index> src, std::span<const Index> dst);

}  // namespace sar
