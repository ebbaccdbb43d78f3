/// GraphData: what one rank holds of a graph with any node types, edge types and fields.
///
/// A homogeneous graph becomes NodeData for training (to_node_data), one with several types a HeteroGraph
/// (construct_hetero_graph) with the NodeData of the type that is trained on (category_data).
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/edge_data.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/graph/io/data_array.hpp>

#include <limits>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// DGL's names for the only node type and the only edge type of a homogeneous graph.
inline constexpr const char* default_node_type = "_N";
inline constexpr const char* default_edge_type = "_E";

/// This rank's nodes of one type: the global ids from book.begin(p) to book.end(p), rows in that order.
struct NodeTypeData {
  std::string name = default_node_type;
  PartitionBook book;
  Array<Index> original_ids;
  DataColumns data;
  bool ids_are_original = true;  ///< false: no file says them, and the ids of the partition stand for them
};

/// The in-edges of this rank's nodes of type dst_type. Their ends are global ids of the two node types;
/// edges.id are original ids among the edges of this type. edges.weight is empty: weights are a field.
struct EdgeTypeData {
  std::string src_type = default_node_type;
  std::string name = default_edge_type;
  std::string dst_type = default_node_type;
  EdgeList edges;
  Index num_edges = 0;  ///< of the whole graph
  DataColumns data;     ///< rows in the order of `edges`
  /// Edges with ids from this one on are no edges of the dataset: reverse edges and self loops that were
  /// added when it was partitioned.
  Index first_added_id = std::numeric_limits<Index>::max();
  bool ids_are_original = true;  ///< as those of nodes

  /// "author:writes:paper", DGL's canonical edge type in the form of its partition files.
  [[nodiscard]] std::string canonical_name() const { return src_type + ":" + name + ":" + dst_type; }
};

struct GraphData {
  std::string name;
  std::vector<NodeTypeData> node_types;
  std::vector<EdgeTypeData> edge_types;

  /// Throws InputError naming what there is instead.
  [[nodiscard]] const NodeTypeData& node_type(const std::string& type) const;
  /// By canonical name, or by the edge type's own where that is unique.
  [[nodiscard]] const EdgeTypeData& edge_type(const std::string& type) const;
  /// One type of nodes and one of edges.
  [[nodiscard]] bool is_homogeneous() const noexcept {
    return node_types.size() == 1 && edge_types.size() == 1;
  }
};

/// A homogeneous graph as NodeData, after the transforms of `options`. Nodes stay where they are:
/// options.partition is not used. Takes the fields that options.fields name, or
///     features      "features" or "feat"             numbers [nodes, F...], flattened to two dimensions
///     labels        "labels" or "label"              integers [nodes] or [nodes, 1]; or whole numbers in
///                                                    floating point, NaN: unlabelled (-1); without any:
///                                                    all unlabelled
///     masks         "train_mask", "val_mask", "test_mask"   bool or integers [nodes]; without: none
///     edge weights  "weight" or "edge_weight"        numbers [edges]; optional
/// Where `edges` is given, it gets what the graph says of its edges. Collective. Throws InputError, the same
/// on every rank, when there are several types, no features, for values that are not finite and labels
/// below -1.
NodeData to_node_data(const Communicator& comm, GraphData graph, const DatasetOptions& options = {},
                      EdgeData* edges = nullptr);

/// The reverse: the fields "features", "labels", the three masks, and "weight" of the edges if there are
/// weights. Local.
GraphData to_graph_data(NodeData data);

/// Throws InputError, the same on every rank, when no training node of any rank has a label. Collective.
void require_training_labels(const Communicator& comm, const NodeData& data);

/// Features, labels and masks of this rank's nodes of one type, from the fields that to_node_data names; a
/// type without features gets features of no columns. A field that options.fields names must be one of some
/// type, and is used where it is one of this type. There are no edges. Collective. Throws InputError, the
/// same on every rank, for an unknown type and values as to_node_data.
NodeData node_data_of(const Communicator& comm, const GraphData& graph, const std::string& type,
                      const DatasetOptions& options = {});

/// The node_data_of the category: the type of nodes that is trained on. Collective. Throws InputError, the
/// same on every rank, when another type has the masks or labels, which it names, and `for_training` when no
/// training node has a label.
NodeData category_data(const Communicator& comm, const GraphData& graph, const std::string& category,
                       const DatasetOptions& options = {}, bool for_training = true);

}  // namespace sar
