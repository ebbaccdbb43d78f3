// SPDX-License-Identifier: MIT

/// EdgeData: what a dataset says of its edges, for tasks whose subject is edges.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/graph/pairs/node_pairs.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

enum class EdgePart : std::uint8_t { train, valid, test, none };

/// Pairs of nodes that a dataset lists as one part of a split, edges of the graph or not. Each pair is on one
/// rank, on any; their ends are any nodes.
struct ListedPairs {
  EdgeList edges;                ///< id: the number of the pair in the whole list
  NodePairList negatives;        ///< pairs that are no edges; none: to be drawn
  Index negatives_per_edge = 0;  ///< k: rows k i, ..., k i + k - 1 belong to edge i of this rank; 0: to none
};

/// Rows belong to `edges`. They come from the fields of the edges that DatasetOptions::fields names, or
///     edge_labels   "labels" or "label"    finite numbers [edges]; NaN: unlabelled
///     edge_type     "type"                 whole numbers from 0
///     edge_split    "split"                0 training, 1 validation, 2 test; -1 or NaN: no part
///     edge_train_mask, edge_val_mask, edge_test_mask   "train_mask", ...: 0 or 1 [edges], without "split";
///                                          the first of several counts
struct EdgeData {
  EdgeList edges;                  ///< in-edges of this rank's nodes, without those that options have added
  Array<EdgePart> parts;           ///< empty: the dataset has no split
  Array<double> labels;            ///< NaN: unlabelled; empty: the dataset has none
  Array<Index> types;              ///< from 0; empty: the dataset has none
  std::vector<ListedPairs> lists;  ///< of training, validation and test; empty: the dataset has none
  bool ids_are_original = true;    ///< as EdgeTypeData's
};

}}  // namespace sar
