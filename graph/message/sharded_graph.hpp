/// The data behind a GraphShardManager: shards, degrees, and which rows change hands in which round.
///
/// A graph of few edges takes memory for its edges, not for its nodes, so that a graph of many types may have
/// a hundred of them: ids are shared with other graphs of the same nodes, degrees are made when an operation
/// asks, shards list the rows that have edges.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/halo.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/message/lazy_array.hpp>
#include <sar/graph/shard/edge_list.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Halo rows that several graphs with the same sources have in common: the union of what each reads.
struct SharedHalo {
  std::vector<Array<local_index>> rows;  ///< of each owner, ascending
  std::shared_ptr<const std::vector<HaloRound>> rounds;
};

/// The halo of the graphs with these edges, whose sources are nodes of `src_book`. Memory: at most about 32
/// bytes for each row of the halo. Collective.
SharedHalo share_halo(const Communicator& comm, const PartitionBook& src_book,
                      std::span<const EdgeList* const> edges);

/// Original ids of a rank's nodes, which graphs of the same nodes share.
using SharedIds = std::shared_ptr<const Array<Index>>;

/// Numbers of some rows; those of all others are 0.
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

struct ShardedGraph {
  Communicator comm;
  PartitionBook src_book, dst_book;
  bool is_block;
  SharedIds shared_src_ids, shared_dst_ids;
  /// Of the destinations, counted in the shards.
  std::shared_ptr<const LazyArray> in_degrees = std::make_shared<LazyArray>([this] { return count_in(); });
  /// Of the sources. A message flow graph has these from the graph that it was made from.
  std::shared_ptr<const LazyArray> out_degrees = std::make_shared<LazyArray>([this] { return count_out(); });
  /// Of the sources of a message flow graph, also from there; null in others.
  std::shared_ptr<const LazyArray> src_in_degrees;
  /// Factors of rows, as far as an operation has asked for them and the graph keeps them
  /// (degree_factors.hpp).
  struct RowFactors {
    Tensor rows;  ///< of the local ones
    Tensor halo;  ///< of the halo rows
  };
  mutable std::array<std::array<RowFactors, 3>, 3> row_factors;  ///< by NodeDegree and DegreeFactor
  /// Errors of rounded gradients [halo rows, columns], by the number of the operation in its training step.
  mutable std::map<std::uint64_t, Tensor> gradient_errors;
  Tensor edge_weight;
  Index num_global_edges = 0;

  /// Edges between nodes of this worker. Shared with the graph of the same edges whose halo is held.
  std::shared_ptr<GraphShard> local_shard;
  /// Edges from nodes of others; its source rows are the halo rows.
  std::shared_ptr<GraphShard> remote_shard;
  GraphShard& local = *local_shard;
  GraphShard& remote = *remote_shard;
  /// Rounds 1 .. P-1 of the rotation. Relations with the same sources share them.
  std::shared_ptr<const std::vector<HaloRound>> shared_rounds;
  /// Of a graph whose source rows are the local ones and, after them, those of the halo, so that no rows
  /// travel: the graph with the same edges whose rows travel. Null in others.
  std::shared_ptr<const ShardedGraph> travelling;

  [[nodiscard]] const Array<Index>& src_ids() const { return *shared_src_ids; }
  [[nodiscard]] const Array<Index>& dst_ids() const { return *shared_dst_ids; }
  /// src_in_degrees, or in_degrees of a homogeneous graph. Throws InputError where they are not known.
  [[nodiscard]] const LazyArray& in_degrees_of_sources() const;
  /// 1 / in-degree, 0 where that is 0: the factors of a mean. Kept where keeps_numbers_of(destinations), or
  /// made for each call. Several threads may ask at once.
  [[nodiscard]] Tensor inverse_in_degrees() const;
  /// Whether a number for each of so many rows is little beside the edges.
  [[nodiscard]] bool keeps_numbers_of(Index rows) const noexcept { return rows <= num_edges(); }
  [[nodiscard]] const std::vector<HaloRound>& rounds() const { return *shared_rounds; }
  [[nodiscard]] Index num_src_rows() const noexcept {
    return local.num_src_rows + (holds_halo() ? remote.num_src_rows : 0);
  }
  [[nodiscard]] bool holds_halo() const noexcept { return travelling != nullptr; }
  /// A value for each local source, then those of the halo rows. Collective.
  [[nodiscard]] Array<Index> with_halo(std::span<const Index> of_sources) const;
  /// Whether sources and destinations are the same nodes, and all of them.
  [[nodiscard]] bool is_homogeneous() const { return is_block && src_book == dst_book && !src_in_degrees; }

  /// Of this worker.
  [[nodiscard]] Index num_edges() const noexcept;
  /// Original ids of the edges. Throws InputError when they were dropped.
  [[nodiscard]] const Array<Index>& edge_ids() const;
  [[nodiscard]] bool has_edge_ids() const noexcept { return edge_ids_->has_value(); }
  void set_edge_ids(Array<Index> ids) { *edge_ids_ = std::move(ids); }
  void drop_edge_ids() const { edge_ids_->reset(); }

  /// Of all arrays that are there now: edges, ids, degrees, halo rows; not edge_weight.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// The rotation: in round r = 0 .. P-1 this rank reads rows of rank owner_in_round(r) and its own rows are
  /// read by reader_in_round(r). Round 0 is the rank itself.
  [[nodiscard]] int owner_in_round(int round) const {
    return (comm.rank() - round + comm.size()) % comm.size();
  }
  [[nodiscard]] int round_of_owner(int owner) const {
    return (comm.rank() - owner + comm.size()) % comm.size();
  }
  [[nodiscard]] int reader_in_round(int round) const { return (comm.rank() + round) % comm.size(); }
  [[nodiscard]] int round_of_reader(int reader) const {
    return (reader - comm.rank() + comm.size()) % comm.size();
  }

  ShardedGraph(const Communicator& communicator, const PartitionBook& sources,
               const PartitionBook& destinations, EdgeList edges, bool prefix, SharedIds ids_of_sources,
               SharedIds ids_of_destinations, const SharedHalo* halo = nullptr);
  /// The graph whose source rows are the local ones and then the halo rows of `graph`. It shares the edges,
  /// and what is known of them. `ids`: src_ids() and those of the halo rows. Degrees of halo rows that none
  /// of its edges reads are 0. Collective.
  static std::shared_ptr<const ShardedGraph> holding_halo(std::shared_ptr<const ShardedGraph> graph,
                                                          SharedIds ids);
  /// A layer of a graph, whose maker fills in the rest (graph/build/layer_graph.cpp).
  ShardedGraph(const Communicator& communicator, const PartitionBook& sources,
               const PartitionBook& destinations,
               std::shared_ptr<GraphShard> local_edges = std::make_shared<GraphShard>(),
               std::shared_ptr<GraphShard> remote_edges = std::make_shared<GraphShard>())
      : comm(communicator),
        src_book(sources),
        dst_book(destinations),
        is_block(true),
        local_shard(std::move(local_edges)),
        remote_shard(std::move(remote_edges)) {}
  ShardedGraph(const ShardedGraph&) = delete;
  ShardedGraph& operator=(const ShardedGraph&) = delete;

 private:
  void build(EdgeList edges, SharedIds ids_of_sources, SharedIds ids_of_destinations, const SharedHalo* halo);
  void check_books() const;
  /// The shards, from the edges; returns the rows of each owner that this rank reads.
  std::vector<Array<local_index>> make_shards(EdgeList edges, bool weighted, const SharedHalo* halo);
  /// used_by_others. Collective.
  void count_uses();
  [[nodiscard]] Array<Index> count_in() const;
  [[nodiscard]] Array<Index> count_out() const;
  /// `numbers` of the sources, and those of the halo rows that an edge reads. Collective.
  static std::shared_ptr<const LazyArray> with_read_halo(const std::shared_ptr<const ShardedGraph>& graph,
                                                         const std::shared_ptr<const LazyArray>& numbers);
  /// Edges of other ranks from local sources.
  RowCounts used_by_others_;
  mutable std::once_flag inverse_once_;
  mutable Tensor inverse_in_degrees_;
  /// Shared with the graph that holds the halo.
  std::shared_ptr<std::optional<Array<Index>>> edge_ids_ = std::make_shared<std::optional<Array<Index>>>();
};

}  // namespace sar
