/// Nodes and edges as they lie in the arrays of a host program.
#pragma once

#include <sar/config.hpp>
#include <sar/core/tensor.hpp>

#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION {

/// The edges that a rank gives, in the host's arrays: edge k goes from src[k] to dst[k]. One rank, whichever,
/// gives each directed edge of the graph, once; the edge travels to the owner of its destination. Parallel
/// edges and self loops are edges like others. The graph keeps none of these arrays.
template <class Id>
struct HostEdges {
  std::span<const Id> src, dst;
  /// Ids of the edges, which key random draws on edges: from 0 to 2^61 - 1, each once on all ranks together.
  /// Without: 0, 1, ... by rank and position.
  std::span<const std::int64_t> ids{};
  Tensor weight{};  ///< [edges], borrowed or not; on all ranks that have edges, or undefined on all
};

/// The ends of the edges are the host's global ids of nodes.
using GlobalEdges = HostEdges<std::int64_t>;
/// The ends of the edges are numbers of the rank's own numbering (LocalToGlobal).
using LocalEdges = HostEdges<std::int32_t>;

/// A rank's own numbering: first its nodes, 0 .. num_owned - 1, then its ghosts, which are the nodes of other
/// ranks that its edges come from or go to. The graph keeps none of these arrays.
struct LocalToGlobal {
  Index num_owned = 0;
  std::span<const std::int64_t> global_ids{};  ///< of the nodes, then of the ghosts
};

/// Two sets of nodes, where edges go from the one to the other: from a coarse mesh to a fine one, from
/// particles to cells. The sets have ids and owners of their own: source 5 and destination 5 are two nodes.
template <class Nodes>
struct HostEnds {
  Nodes sources, destinations;
};

using GlobalEnds = HostEnds<std::span<const std::int64_t>>;
/// The ends of an edge are numbers in two numberings.
using LocalEnds = HostEnds<LocalToGlobal>;

}  // namespace sar
