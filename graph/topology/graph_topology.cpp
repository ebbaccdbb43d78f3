// SPDX-License-Identifier: MIT
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/topology/graph_topology.hpp>

namespace sar { inline namespace SAR_PRECISION {

Array<Index> GraphTopology::with_halo(std::span<const Index> of_sources) const {
  const Array<Index> halo = fetch_halo(comm, of_sources, rounds());
  Array<Index> values;
  values.reserve(of_sources.size() + halo.size());
  values.insert(values.end(), of_sources.begin(), of_sources.end());
  values.insert(values.end(), halo.begin(), halo.end());
  return values;
}

const Array<Index>& GraphTopology::edge_ids() const {
  require<InputError>(has_edge_ids(),
                      "this operation reads the ids of the graph's edges, which drop_edge_ids() has dropped");
  return **shared_edge_ids;
}

std::size_t GraphTopology::bytes() const noexcept {
  std::size_t bytes = local.bytes() + remote.bytes() + used_by_others.bytes();
  for (const HaloRound& round : rounds()) bytes += round.send_rows.capacity() * sizeof(local_index);
  bytes += shared_src_ids->capacity() * sizeof(Index);
  if (shared_dst_ids != shared_src_ids) bytes += shared_dst_ids->capacity() * sizeof(Index);
  if (has_edge_ids()) bytes += edge_ids().capacity() * sizeof(Index);
  return bytes;
}

}}  // namespace sar
