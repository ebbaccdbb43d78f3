/// From the names that a host gives the ends of its edges to the global ids of the graph.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/build/host_edges.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// The ids of the nodes that this rank owns.
inline std::span<const Index> own_nodes(std::span<const Index> nodes) {
  return nodes;
}
inline std::span<const Index> own_nodes(const LocalToGlobal& nodes) {
  return nodes.global_ids.first(static_cast<std::size_t>(nodes.num_owned));
}

/// The nodes that sources, destinations or both are taken from. `Nodes` is a span of the host's ids or
/// LocalToGlobal.
template <class Nodes>
struct HostNodes {
  const Nodes& nodes;
  const char* what;  ///< "node", "source" or "destination", for errors
  PartitionBook book;
};

/// One end of all edges of this rank: the host's names of it, and the global ids that find_ends writes.
template <class Id>
struct EndColumn {
  std::span<const Id> given;
  Array<Index>& global;
  const char* goes;  ///< "comes from" or "goes to", for errors
};

/// Writes the global ids of ends that are taken from the same nodes. Collective. Throws InputError, the same
/// on every rank, for an end that no rank gives, and for a number that is not of the local numbering.
void find_ends(const Communicator& comm, const HostNodes<std::span<const Index>>& nodes,
               const GlobalEdges& edges, std::span<const EndColumn<std::int64_t>> columns);
void find_ends(const Communicator& comm, const HostNodes<LocalToGlobal>& nodes, const LocalEdges& edges,
               std::span<const EndColumn<std::int32_t>> columns);

}  // namespace sar
