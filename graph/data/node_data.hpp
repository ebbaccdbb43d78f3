// SPDX-License-Identifier: MIT

/// NodeData: what one rank holds of a homogeneous dataset: its nodes, their fields, and their in-edges, as
/// numbers that a training reads.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/edge_data.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// The masks of all splits of a dataset (choose_split). With one split, NodeData has its masks, and there are
/// no others here.
struct NodeSplits {
  struct Mask {
    Index columns = 1;         ///< 1: the same in all splits
    Array<std::uint8_t> rows;  ///< [my nodes, columns]
  };
  Index count = 1;
  Index chosen = 0;                ///< the split that NodeData's masks are of
  std::array<Mask, 3> masks = {};  ///< of training, validation and test
};

/// Rows belong to the nodes book.begin(p) .. book.end(p) of rank p, in that order.
struct NodeData {
  std::string name;           ///< for messages: "cora", "sbm"
  std::string item = "node";  ///< what a row is of, for messages: "graph", where the rows are graph samples
  PartitionBook book;         ///< who owns which nodes
  Array<Index> original_ids;  ///< the node's id in the dataset: keys random draws, names results
  EdgeList edges;             ///< in-edges of my nodes
  Index num_edges = 0;        ///< of the whole graph
  Index num_classes = 0;
  Tensor features;  ///< [my nodes, F]; undefined if sparse_features is set
  /// The same as sparse rows, if DatasetOptions::sparse_features says so.
  std::shared_ptr<const SparseMatrix> sparse_features = nullptr;
  /// -1: unlabelled, left out of losses and metrics whatever the masks say. With targets, 0: there is one.
  Array<std::int64_t> labels;
  LabelType label_type = LabelType::classes;
  Tensor targets;  ///< labels that are no classes: [my nodes, T]; NaN: missing
  Array<std::uint8_t> train_mask, val_mask, test_mask;
  bool ids_are_original = true;  ///< as NodeTypeData's
  NodeSplits splits;             ///< how many there are; of several, the masks of all (choose_split)
  EdgeData edge_data;            ///< if DatasetOptions::edge_data says so

  [[nodiscard]] Index num_nodes() const noexcept { return book.num_nodes(); }
  /// F.
  [[nodiscard]] Index num_features() const {
    return sparse_features != nullptr ? sparse_features->num_columns() : features.row_size();
  }
  /// The features, dense or sparse, as the input of a network.
  [[nodiscard]] Variable input() const {
    return sparse_features != nullptr ? Variable(sparse_features) : Variable(features);
  }
  /// What a network predicts for a node: scores of the classes, or T numbers.
  [[nodiscard]] Index num_outputs() const noexcept {
    return targets.defined() ? targets.row_size() : num_classes;
  }
};

/// Local. A homogeneous graph as NodeData without features, labels and masks: takes its ids and edges.
NodeData without_columns(GraphData& graph);

/// Collective. The graph of a loaded or generated dataset. Takes data.edges, which is empty afterwards, and
/// calls release_cached_memory().
Graph construct_full_graph(const Communicator& comm, NodeData& data, const GraphOptions& options = {});
}}  // namespace sar
