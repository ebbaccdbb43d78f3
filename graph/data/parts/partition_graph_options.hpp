// SPDX-License-Identifier: MIT

/// How a graph is partitioned.
#pragma once

#include <sar/comm/collective_call.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/partition/partition.hpp>

#include <cstdint>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// The order of the nodes of a part.
enum class NodeOrder {
  original,  ///< by original id
  clusters,  ///< nodes that are used together lie together (node_order.hpp)
};

[[nodiscard]] constexpr const char* to_string(NodeOrder order) noexcept {
  return order == NodeOrder::clusters ? "clusters" : "original";
}

struct PartitionGraphOptions {
  int parts = 1;
  /// The transforms of the edges, how nodes are assigned to parts, and which fields are sparse; other options
  /// are not used. A reversed
  /// edge has the data of the edge that it reverses. A self loop has "weight" and "edge_weight" 1, and all
  /// other data 0. An edge type between two types of nodes gets no self loops, and its reverse edges become
  /// another edge type: of author:writes:paper paper:rev_writes:author, with the ids and data of the edges
  /// that they reverse.
  DatasetOptions data = {};
  std::int64_t most_gathered = most_gathered_edges;  ///< automatic: metis for up to so many edges
  NodeOrder order = NodeOrder::clusters;
  /// metis, ldg, scotch: the parts get about the same number of in-edges, and of training nodes
  /// ("train_mask"). They get about the same number of nodes of each type with every method.
  bool balance_edges = true;
  bool balance_training = true;
};

inline void add_arguments(CollectiveCall& call, const PartitionGraphOptions& options) {
  call.equal("number of parts", options.parts)
      .equal(options.data)
      .equal("order", to_string(options.order))
      .equal("balance_edges", options.balance_edges)
      .equal("balance_training", options.balance_training);
}

/// How far a phase is: `done` of `total`, counted over all ranks. Each phase begins with 0 done and ends with
/// all. Called on every rank.
using PartitionProgress = FunctionRef<void(const std::string& phase, Index done, Index total)>;
inline void no_progress(const std::string& /*phase*/, Index /*done*/, Index /*total*/) {}
}}  // namespace sar
