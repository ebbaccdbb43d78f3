/// NodePairs: the rows of both ends of pairs of nodes, wherever the nodes are. Link prediction scores them.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// Pairs of nodes as columns of global ids (PartitionBook).
struct NodePairList {
  Array<Index> src, dst;

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(src.size()); }
};

///     const NodePairs pairs(comm, book, src, dst);
///     const Variable scores = predictor(pairs.src(h), pairs.dst(h));
///
/// Each rank has pairs of its own, or none; their ends are any nodes. A pair may occur again. An end is one
/// update_all on a graph from the nodes to the pairs, with an edge for each: a row travels once to a rank
/// that reads it, and its gradient once back, in the stages that `options` say.
class NodePairs {
 public:
  /// `book` says who owns which node; src and dst are global ids. Collective. Throws, the same on every rank,
  /// ShapeError when lengths differ, InputError for a node that does not exist.
  NodePairs(const Communicator& comm, const PartitionBook& book, std::span<const Index> src,
            std::span<const Index> dst, const GraphOptions& options = {});
  /// For sources and destinations that are different nodes. Collective.
  NodePairs(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
            std::span<const Index> src, std::span<const Index> dst, const GraphOptions& options = {});

  /// Of this rank.
  [[nodiscard]] Index num_pairs() const noexcept { return src_.num_dst_nodes(); }

  /// Row i is h[src[i]], for h [local nodes, ...]: [pairs, ...]. Differentiable. Collective, also in the
  /// backward pass. Throws, the same on every rank, ShapeError when h has another number of rows.
  [[nodiscard]] Variable src(const Variable& h) const;
  /// The same of the other end. Collective.
  [[nodiscard]] Variable dst(const Variable& h) const;

 private:
  GraphShardManager src_, dst_;
};

}  // namespace sar
