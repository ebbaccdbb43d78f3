// SPDX-License-Identifier: MIT

/// Splits of nodes and edges: drawn for data that have none, and one of several.
#pragma once

#include <sar/comm/collective_call.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <span>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

// Splits that are drawn: of nodes, for data that have none, and of edges, for link prediction.

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

// Datasets with several splits: masks [nodes, splits], of which one split at a time is trained on.
//
//     for (Index k = 0; k < data.splits.count; ++k) {
//       choose_split(data, k);                        // sets train_mask, val_mask and test_mask
//       ...
//     }

/// Local. Returns how many splits the masks of these nodes have; 0: there are no masks. `names` as
/// DatasetOptions::fields.
Index num_splits(const NodeTypeData& nodes, const std::map<std::string, std::string>& names = {});
/// Local. The same of the nodes of a source of one type.
Index num_splits(const GraphSource& source, const DatasetOptions& options = {});

/// Local. Makes the masks of a split those of the data. Throws InputError for a split that there is not.
void choose_split(NodeData& data, Index split);

/// Local. Sets the masks of the data, of training, validation and test, which have rows of one number for
/// all splits or of one for each; then chooses the split. `places` begin messages. Throws InputError for
/// numbers other than 0 and 1, for different numbers of splits, and for a split that there is not.
void set_splits(NodeData& data, const std::array<DataArray, 3>& masks, Index split,
                const std::array<std::string, 3>& places);

/// Local. Returns one split of a mask: 0 or 1 for each row. Throws as set_splits.
Array<std::uint8_t> mask_of_split(const DataArray& mask, Index split, const std::string& place,
                                  std::span<const Index> ids = {});

// Which nodes of a mask have a label. Nodes without one (NodeData::labels is -1) are left out of losses,
// metrics and mini-batches.

/// Local. Returns the global ids of this rank's nodes that one of the masks has and that have a label:
/// seeds of mini-batches.
Array<Index> labelled_nodes(const NodeData& data, const Communicator& comm,
                            std::initializer_list<std::span<const std::uint8_t>> masks);

/// Nodes of a mask, of all ranks.
struct MaskCounts {
  Index nodes = 0;
  Index unlabelled = 0;
  Index first_unlabelled = -1;  ///< the smallest original id of them; -1: there are none
};

/// Collective. Throws ShapeError, the same on every rank, for a mask of another length than the labels.
MaskCounts count_mask(const NodeData& data, const Communicator& comm, std::span<const std::uint8_t> mask);

/// Collective. Throws InputError, the same on every rank, when no training node of any rank has a label.
/// The messages begin with `place`, by default with the name of the data.
void require_training_labels(const Communicator& comm, const NodeData& data, const std::string& place = {});
}}  // namespace sar
