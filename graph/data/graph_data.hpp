// SPDX-License-Identifier: MIT

/// GraphData: what one rank holds of a graph with any node types, edge types and fields. A homogeneous graph
/// has one type of each. Of a source it has the types only, which are read step by step (graph_steps.hpp).
///
/// NodeData is the view of one type (graph_view.hpp); a Graph has all types (construct_hetero_graph).
#pragma once

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/files/sparse_array.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/edge_data.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
