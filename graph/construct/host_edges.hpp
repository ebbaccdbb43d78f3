// SPDX-License-Identifier: MIT

/// Nodes and edges in the arrays of a host program.
#pragma once

#include <sar/config.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
