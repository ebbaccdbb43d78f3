// SPDX-License-Identifier: MIT

/// Splits that are drawn: of nodes, for data that have none, and of edges, for link prediction.
#pragma once

#include <sar/comm/collective_call.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>
#include <limits>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// How many of the nodes with a label one part of a split gets.
struct SplitPart {
  double share = 0;        ///< of the nodes, from 0 to 1
  Index count = -1;        ///< or a number of them; -1: the share
  bool per_class = false;  ///< of the nodes of each class, not of all together

  static constexpr Index rest = std::numeric_limits<Index>::max();  ///< count: all that are left

  /// "0.6", "500", "20/class", "0.6/class", "rest"
  [[nodiscard]] std::string text() const;
  bool operator==(const SplitPart&) const = default;
};

/// Training nodes are drawn first, then validation nodes from the others, then test nodes. By default 60, 20
/// and 20 % of the nodes. Planetoid's rule is {.train = {.count = 20, .per_class = true}, .valid = {.count =
/// 500}, .test = {.count = 1000}}.
struct DrawSplitOptions {
  SplitPart train{.share = 0.6}, valid{.share = 0.2}, test{.share = 0.2};
  std::uint64_t seed = 0;
};

inline void add_arguments(CollectiveCall& call, const DrawSplitOptions& options) {
  call.equal("train", options.train.text())
      .equal("valid", options.valid.text())
      .equal("test", options.test.text())
      .equal("seed", options.seed);
}

/// Local. Reads a part from its text(). Throws InputError.
SplitPart parse_split_part(const std::string& text);

/// Local. Throws InputError if a share is not from 0 to 1, or the shares are more than 1 together.
void require_shares(const DrawSplitOptions& options);

/// Collective. Draws train_mask, val_mask and test_mask at random among the nodes that have a label, in
/// place of the masks of the data. A node's original id and the seed say where it stands in a random order
/// of all nodes; a part takes the first ones that are left. So the split is the same for every number of
/// ranks and every partition, and the sizes are exact: a share is rounded to whole nodes, so that 0.6, 0.2
/// and 0.2 leave no node over. If NodeData::ids_are_original is false, the ids of the partition are used,
/// and the split depends on the partition. Throws InputError, the same on every rank, for shares that are
/// no shares or more than 1 together, and when too few nodes are left for a part.
void draw_split(const Communicator& comm, NodeData& data, const DrawSplitOptions& options = {});

/// Edges for training, validation and test of link prediction.
struct EdgeSplitOptions {
  double valid = 0.05;  ///< the share of the edges; 0 or more, together less than 1
  double test = 0.1;
  std::uint64_t seed = 0;
};

/// In-edges of this rank's nodes; ids and weights are those of the whole graph's edges.
struct EdgeSplit {
  EdgeList train, valid, test;
};

/// Splits the edges of a graph at random into training, validation and test edges. One draw per pair of
/// nodes, keyed by their original ids, decides for all edges between them: reverse and parallel edges are in
/// the same part, so that no edge reveals another one. The split is the same for every number of ranks. Edges
/// are drawn independently, so the sizes match the shares only on average. If NodeData::ids_are_original is
/// false, the ids of the partition are used, and the split depends on the partition. Throws InputError on
/// every rank for invalid shares. Collective: requests the original ids of the sources from their owners.
EdgeSplit split_edges(const Communicator& comm, const NodeData& data, const EdgeSplitOptions& options = {});
}}  // namespace sar
