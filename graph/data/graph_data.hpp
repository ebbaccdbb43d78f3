// SPDX-License-Identifier: MIT

/// GraphData: what one rank holds of a graph with any node types, edge types and fields. A homogeneous graph
/// has one type of each. Of a source it has the types only, which are read step by step (graph_steps.hpp).
/// EdgeData: what it says of its edges.
///
/// NodeData is the view of one type (graph_view.hpp); a Graph has all types (construct_hetero_graph).
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/sampling/node_pairs.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// EdgeData: what a dataset says of its edges, for tasks whose subject is edges.

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

/// DGL's names for the only node type and the only edge type of a homogeneous graph.
inline constexpr const char* default_node_type = "_N";
inline constexpr const char* default_edge_type = "_E";

/// This rank's nodes of one type: the global ids from book.begin(p) to book.end(p), rows in that order.
struct NodeTypeData {
  std::string name = default_node_type;
  PartitionBook book = {};
  Array<Index> original_ids = {};
  DataColumns data = {};
  bool ids_are_original = true;  ///< false: no file says them, and the ids of the partition stand for them
  std::vector<DataField> unread = {};  ///< fields that the source has and `data` has not
  SparseColumns sparse = {};           ///< fields that are sparse rows, not in `data`

  /// Of the whole graph.
  [[nodiscard]] Index num_nodes() const noexcept { return book.num_nodes(); }
};

/// The in-edges of this rank's nodes of type dst_type. Their ends are global ids of the two node types;
/// edges.id are original ids among the edges of this type. edges.weight is empty: weights are a field.
struct EdgeTypeData {
  std::string src_type = default_node_type;
  std::string name = default_edge_type;
  std::string dst_type = default_node_type;
  EdgeList edges = {};
  Index num_edges = 0;    ///< of the whole graph
  DataColumns data = {};  ///< rows in the order of `edges`
  /// Edges with ids from this one on are no edges of the dataset: reverse edges and self loops that were
  /// added when it was partitioned.
  Index first_added_id = std::numeric_limits<Index>::max();
  bool ids_are_original = true;        ///< as those of nodes
  std::vector<DataField> unread = {};  ///< as that of nodes
  /// Pairs that the dataset lists as a split, in global ids (DatasetOptions::edge_type); mostly none.
  std::vector<ListedPairs> lists = {};

  /// "author:writes:paper", DGL's canonical edge type in the form of its partition files.
  [[nodiscard]] std::string canonical_name() const { return src_type + ":" + name + ":" + dst_type; }
};

/// Local. The descriptions of all fields that have been read, dense and sparse, sorted by name.
[[nodiscard]] std::vector<DataField> fields_of(const NodeTypeData& nodes);

/// Local. The rows of this rank's edges by id.
class RowsById {
 public:
  explicit RowsById(Array<Index> ids);
  /// The row of each of these ids, which are ids of this rank's edges.
  [[nodiscard]] Array<Index> of(std::span<const Index> ids) const;

 private:
  Array<Index> ids_, order_;
};

/// All functions are local.
struct GraphData {
  std::string name;
  std::string description;  ///< what was loaded, in a few words; empty: it was not loaded
  std::vector<NodeTypeData> node_types;
  std::vector<EdgeTypeData> edge_types;

  /// The place of a node type in node_types. Throws InputError naming what there is instead.
  [[nodiscard]] std::size_t place_of(const std::string& node_type) const;
  /// The place in edge_types of the type with this canonical name, or with this name if it is the only one.
  /// Throws InputError naming what there is instead.
  [[nodiscard]] std::size_t edge_place_of(const std::string& edge_type) const;
  [[nodiscard]] const NodeTypeData& node_type(const std::string& type) const {
    return node_types[place_of(type)];
  }
  /// One type of nodes and one of edges.
  [[nodiscard]] bool is_homogeneous() const noexcept {
    return node_types.size() == 1 && edge_types.size() == 1;
  }
  /// Of all types and ranks together.
  [[nodiscard]] Index num_nodes() const;
  [[nodiscard]] Index num_edges() const;
  /// "2708 nodes, 10556 edges; nodes: features labels", or of several types "paper 2708 nodes (features),
  /// author 12 nodes; author:writes:paper 40 edges".
  [[nodiscard]] std::string describe() const;
};

/// Local. Throws InputError unless there is one type of nodes and one of edges.
void require_one_type(const std::string& name, std::size_t node_types, std::size_t edge_types);

/// Local. Throws InputError for a graph without nodes or with fewer nodes than ranks.
void require_nodes_for_ranks(const std::string& name, Index num_nodes, int ranks);

// NodeData: what one rank holds of a homogeneous dataset: its nodes, their fields, and their in-edges, as
// numbers that a training reads.

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
