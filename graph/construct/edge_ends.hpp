// SPDX-License-Identifier: MIT

/// Translates the host ids of the ends of edges to global ids.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/config.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

// Nodes and edges in the arrays of a host program.

/// The edges that a rank gives, in the host's arrays: edge k goes from src[k] to dst[k]. Each directed edge
/// of the graph must be given exactly once, by any rank; it is sent to the owner of its destination. Parallel
/// edges and self loops are allowed. The arrays are not kept.
template <class Id>
struct HostEdges {
  std::span<const Id> src, dst;
  /// Ids of the edges, which key random draws on edges: unique over all ranks, from 0 to 2^61 - 1. Default:
  /// 0, 1, ... by rank and position.
  std::span<const std::int64_t> ids{};
  Tensor weight{};  ///< [edges], borrowed or owned; on all ranks that have edges, or on none
};

/// Edges whose ends are host ids of nodes.
using GlobalEdges = HostEdges<std::int64_t>;
/// Edges whose ends are indices in the rank's own numbering (LocalToGlobal).
using LocalEdges = HostEdges<std::int32_t>;

/// A rank's own numbering of nodes: first the nodes it owns, 0 .. num_owned - 1, then its ghosts, the nodes
/// of other ranks at the ends of its edges. The arrays are not kept.
struct LocalToGlobal {
  Index num_owned = 0;
  std::span<const std::int64_t> global_ids{};  ///< host ids of the owned nodes, then of the ghosts
};

/// Two sets of nodes, with edges from one to the other, for example from a coarse mesh to a fine one or from
/// particles to cells. Each set has its own ids and owners: source 5 and destination 5 are different nodes.
template <class Nodes>
struct HostEnds {
  Nodes sources, destinations;
};

using GlobalEnds = HostEnds<std::span<const std::int64_t>>;
/// Edge ends are indices in two numberings.
using LocalEnds = HostEnds<LocalToGlobal>;

inline constexpr Index edges_per_task = Index{1} << 14;  ///< in parallel loops over a host's edges

/// Returns the ids of the nodes that this rank owns.
inline std::span<const Index> own_nodes(std::span<const Index> nodes) {
  return nodes;
}
inline std::span<const Index> own_nodes(const LocalToGlobal& nodes) {
  return nodes.global_ids.first(static_cast<std::size_t>(nodes.num_owned));
}

/// The set of nodes that sources, destinations or both belong to. `Nodes` is a span of host ids or
/// LocalToGlobal.
template <class Nodes>
struct HostNodes {
  const Nodes& nodes;
  const char* what;  ///< "node", "source" or "destination", for error messages
  PartitionBook book;
};

/// One end of all edges of this rank: the host ids, and the global ids that find_ends writes.
template <class Id>
struct EndColumn {
  std::span<const Id> given;
  Array<Index>& global;
  const char* goes;  ///< "comes from" or "goes to", for error messages
};

/// Collective. Writes the global ids of ends that belong to the same set of nodes. Throws InputError on
/// every rank for an end that no rank gives, and for an index outside the local numbering.
template <class Nodes, class Id>
void find_ends(const Communicator& comm, const HostNodes<Nodes>& nodes, const HostEdges<Id>& edges,
               std::span<const EndColumn<Id>> columns);

}}  // namespace sar
