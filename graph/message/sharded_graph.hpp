/// The data behind a GraphShardManager: shards, degrees, and which rows change hands in which round.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/halo.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/shard/edge_list.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

struct ShardedGraph {
  Communicator comm;
  PartitionBook src_book, dst_book;
  bool is_block;
  Array<Index> src_ids, dst_ids;
  Array<Index> in_degrees, out_degrees;
  /// Of a message flow graph, which has its degrees from the graph that it was made from.
  std::optional<Array<Index>> src_in_degrees;
  Array<real> inverse_in_degrees;  ///< 1 / in-degree, 0 where that is 0: the factor of a mean
  /// Factors of rows, as far as an operation has asked for them (degree_factors.hpp).
  struct RowFactors {
    Tensor rows;  ///< of the local ones
    Tensor halo;  ///< of the halo rows of all shards
  };
  mutable std::array<std::array<RowFactors, 3>, 3> row_factors;  ///< by NodeDegree and DegreeFactor
  Tensor edge_weight;
  Index num_global_edges = 0;

  GraphShard local;                ///< edges between nodes of this worker
  std::vector<HaloRound> rounds;   ///< rounds 1 .. P-1 of the rotation
  std::vector<GraphShard> remote;  ///< remote[i]: edges whose sources arrive in rounds[i]
  Index max_round_rows = 0;        ///< largest recv_rows of any round on any rank

  /// Whether sources and destinations are the same nodes, and all of them.
  [[nodiscard]] bool is_homogeneous() const { return is_block && src_book == dst_book && !src_in_degrees; }

  /// Of this worker.
  [[nodiscard]] Index num_edges() const noexcept;
  /// Original ids of the edges. Throws InputError when they were dropped.
  [[nodiscard]] const Array<Index>& edge_ids() const;
  [[nodiscard]] bool has_edge_ids() const noexcept { return edge_ids_.has_value(); }
  void set_edge_ids(Array<Index> ids) { edge_ids_ = std::move(ids); }
  void drop_edge_ids() const { edge_ids_.reset(); }

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

  /// All remote shards as one; made at the first call and kept.
  [[nodiscard]] const GraphShard& merged() const;

  ShardedGraph(const Communicator& communicator, const PartitionBook& sources,
               const PartitionBook& destinations, EdgeList edges, bool prefix, Array<Index> ids_of_sources,
               Array<Index> ids_of_destinations);
  /// A layer of a graph, whose maker fills in the rest (graph/build/layer_graph.cpp).
  ShardedGraph(const Communicator& communicator, const PartitionBook& sources,
               const PartitionBook& destinations)
      : comm(communicator), src_book(sources), dst_book(destinations), is_block(true) {}
  /// in_degrees and inverse_in_degrees, from the shards.
  void count_in_degrees();

 private:
  void build(EdgeList edges, Array<Index> ids_of_sources, Array<Index> ids_of_destinations);
  void check_books() const;
  /// The shards, from the edges; returns the rows of each owner that this rank reads.
  std::vector<Array<local_index>> make_shards(EdgeList edges, bool weighted);
  /// The rounds: tells each owner which rows this rank reads. Collective.
  void ask_owners(const std::vector<Array<local_index>>& wanted);
  void count_out_degrees();
  mutable std::optional<Array<Index>> edge_ids_;
  mutable std::once_flag merged_once_;
  mutable std::unique_ptr<GraphShard> merged_;
};

}  // namespace sar
