// SPDX-License-Identifier: MIT

/// GraphTopology: this rank's edges of a sharded graph, and the halo rows exchanged in each round.
///
/// The memory of a graph with few edges is proportional to its edges, not to its nodes, so that a
/// heterogeneous graph can have a hundred relations: relations share the ids of their nodes, degrees are
/// computed when an operation first needs them (DegreeCache), and shards list only rows with edges.
///
/// Room graph/topology: What a rank knows of a graph that is spread over the ranks: edges, halo, degrees.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/halo/halo_plan.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Original ids of a rank's nodes, which graphs of the same nodes share.
using SharedIds = std::shared_ptr<const Array<Index>>;

/// Original ids of a rank's edges. All handles of a graph share them, until one drops them.
using SharedEdgeIds = std::shared_ptr<std::optional<Array<Index>>>;

/// Sparse counts: a row that is not listed has count 0.
struct RowCounts {
  Array<local_index> rows, counts;

  void append(Index row, Index count) {
    rows.push_back(static_cast<local_index>(row));
    counts.push_back(static_cast<local_index>(count));
  }
  /// numbers[row] += count. A row may be there several times.
  void add_to(Array<Index>& numbers) const {
    for (Index i = 0; i < std::ssize(rows); ++i) numbers[rows[i]] += counts[i];
  }
  void shrink_to_fit() {
    rows.shrink_to_fit();
    counts.shrink_to_fit();
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return (rows.capacity() + counts.capacity()) * sizeof(local_index);
  }
};

/// Made as a whole, by make_topology() or of another graph in graph/construct/, and shared as const.
struct GraphTopology {
  Communicator comm;
  PartitionBook src_book, dst_book;
  bool is_block = true;   ///< the destinations of a rank are the first of its sources
  bool is_layer = false;  ///< some nodes of another graph, with some of their edges
  bool is_scaled = false;  ///< edge weights are scaled so that sums are unbiased: of a sample
  SharedIds shared_src_ids, shared_dst_ids;
  SharedEdgeIds shared_edge_ids;
  Tensor edge_weight;
  Index num_global_edges = 0;
  GraphShard local;   ///< edges between nodes of this rank
  GraphShard remote;  ///< edges from nodes of others; its source rows are the halo rows
  HaloRounds shared_rounds;       ///< relations with the same sources share them
  RowCounts used_by_others = {};  ///< edges of other ranks from local sources

  [[nodiscard]] const Array<Index>& src_ids() const { return *shared_src_ids; }
  [[nodiscard]] const Array<Index>& dst_ids() const { return *shared_dst_ids; }
  [[nodiscard]] const std::vector<HaloRound>& rounds() const { return *shared_rounds; }
  /// Collective. A value for each local source, then those of the halo rows.
  [[nodiscard]] Array<Index> with_halo(std::span<const Index> of_sources) const;
  /// Whether sources and destinations are the same nodes, and all of them.
  [[nodiscard]] bool is_homogeneous() const { return is_block && src_book == dst_book && !is_layer; }

  /// Of this rank.
  [[nodiscard]] Index num_edges() const noexcept { return local.num_edges() + remote.num_edges(); }
  /// Original ids of the edges. Throws InputError when they were dropped.
  [[nodiscard]] const Array<Index>& edge_ids() const;
  [[nodiscard]] bool has_edge_ids() const noexcept { return shared_edge_ids->has_value(); }

  /// Calls visit(source, destination, edge) for each edge of this rank, in their order. Sources are rows:
  /// the local ones, then those of the halo.
  template <class Visit>
  void for_each_edge(const Visit& visit) const {
    for (const GraphShard* shard : {&local, &remote})
      for (Index i = 0; i < shard->num_rows(); ++i)
        for (Index k = shard->row_begin[i]; k < shard->row_begin[i + 1]; ++k)
          visit(shard->src[k] + (shard == &local ? 0 : local.num_src_rows), shard->dst_row(i),
                shard->edge(k));
  }

  /// Of edges, ids and halo rows; not edge_weight.
  [[nodiscard]] std::size_t bytes() const noexcept;
};

// Makes the topology of a graph from the in-edges of each rank's nodes.

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
