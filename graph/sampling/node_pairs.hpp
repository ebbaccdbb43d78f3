// SPDX-License-Identifier: MIT

/// NodePairs: gathers the rows of both ends of pairs of nodes on any ranks, for link prediction.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/message.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Pairs of nodes as two columns of global ids (PartitionBook).
struct NodePairList {
  Array<Index> src, dst;

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(src.size()); }
};

/// Each rank has its own pairs, or none, with any nodes as ends. Pairs may repeat. Each end is implemented as
/// one update_all on a graph from the nodes to the pairs with one edge per pair: a row is sent once to each
/// rank that reads it, and its gradient is sent back once, in the stages of `options`.
///
/// @code
/// const std::vector<Index> src{0, 1}, dst{299, 0};                  // nodes of any rank
/// const NodePairs pairs(comm, data.book, src, dst);
/// const DotPredictor predictor;
/// const Variable scores = predictor(pairs.src(features), pairs.dst(features));
/// @endcode
class NodePairs {
 public:
  /// Collective. `book`: the owners of the nodes; src and dst are global ids. Throws the same exception on
  /// every rank: ShapeError if lengths differ, InputError for a node that does not exist.
  NodePairs(const Communicator& comm, const PartitionBook& book, std::span<const Index> src,
            std::span<const Index> dst, const GraphOptions& options = {});
  /// Collective. The same for sources and destinations from two sets of nodes.
  NodePairs(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
            std::span<const Index> src, std::span<const Index> dst, const GraphOptions& options = {});

  /// Returns the number of pairs of this rank.
  [[nodiscard]] Index num_pairs() const noexcept { return src_.num_dst_nodes(); }

  /// Returns the rows h[src[i]] of h [local nodes, ...]: [pairs, ...]. Differentiable. Throws ShapeError on
  /// every rank if the number of rows of h does not match. Collective, also in the backward pass.
  [[nodiscard]] Variable src(const Variable& h) const { return src_.update_all(fn::copy_u(h), fn::sum); }
  /// Collective. Returns the rows of the other end.
  [[nodiscard]] Variable dst(const Variable& h) const { return dst_.update_all(fn::copy_u(h), fn::sum); }

 private:
  Graph src_, dst_;
};
}}  // namespace sar
