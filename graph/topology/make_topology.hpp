// SPDX-License-Identifier: MIT

/// Makes the topology of a graph from the in-edges of each rank's nodes.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/shard/graph_shard.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <memory>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Halo rows that several graphs with the same sources have in common: the union of what each reads.
struct SharedHalo {
  std::vector<Array<local_index>> rows;  ///< of each owner, ascending
  HaloRounds rounds;
};

/// Collective. The halo of the graphs with these edges, whose sources are nodes of `src_book`. Memory: at
/// most about 32 bytes for each row of the halo.
SharedHalo share_halo(const Communicator& comm, const PartitionBook& src_book,
                      std::span<const EdgeList* const> edges);

/// Collective. Counts the edges of other ranks from each local source; `remote` are this rank's edges from
/// halo rows. Each reader tells the owners how often it uses their rows.
RowCounts count_uses(const Communicator& comm, const GraphShard& remote,
                     const std::vector<HaloRound>& rounds);

/// Collective. Returns the graph of `edges`, whose destinations are this rank's nodes of `dst_book`.
/// `is_block` as in GraphTopology. Ids that are null or empty are the global ids. `halo`: shared with other
/// graphs; null: what the edges read. Throws InputError for ids, edges and books that do not fit.
std::shared_ptr<const GraphTopology> make_topology(const Communicator& comm, const PartitionBook& src_book,
                                                   const PartitionBook& dst_book, EdgeList edges,
                                                   bool is_block, SharedIds src_ids, SharedIds dst_ids,
                                                   const SharedHalo* halo = nullptr);

}}  // namespace sar
