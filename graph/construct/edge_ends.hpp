// SPDX-License-Identifier: MIT

/// Translates the host ids of the ends of edges to global ids.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/construct/host_edges.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

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
