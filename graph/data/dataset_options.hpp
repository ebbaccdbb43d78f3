// SPDX-License-Identifier: MIT

/// What happens to a graph between its source and the ranks, and what its labels are.
#pragma once

#include <sar/comm/collective_call.hpp>
#include <sar/config.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/graph/partition/partition_method.hpp>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// What the labels of nodes are.
enum class LabelType {
  classes,   ///< one class a node
  binary,    ///< several labels a node, each 0 or 1
  values,    ///< numbers: regression
  automatic  ///< what the data say; refused where they do not say it
};

constexpr const char* to_string(LabelType type) {
  return type == LabelType::classes  ? "classes"
         : type == LabelType::binary ? "binary"
         : type == LabelType::values ? "values"
                                     : "automatic";
}

/// Whether features are sparse rows (core/tensor/sparse_matrix.hpp): of each row, only the values that are
/// not 0.
enum class SparseFeatures {
  no,
  yes,
  automatic,  ///< where a row has at least 64 columns, of which at most an eighth are not 0 (is_sparse_field)
};

[[nodiscard]] constexpr const char* to_string(SparseFeatures sparse) noexcept {
  return sparse == SparseFeatures::yes ? "yes" : sparse == SparseFeatures::no ? "no" : "automatic";
}

/// The edges are transformed in the order of the first three options, and the ids of the edges do not depend
/// on the partitioning. E is one more than the largest edge id of the source: the number of edges, unless a
/// partition lost duplicates.
struct DatasetOptions {
  bool add_reverse_edges = false;   ///< each edge e = (u, v) gets an edge (v, u) with id E + e and its weight
  bool add_self_loops = false;      ///< (v, v) for each node, weight 1; ids in node order, after all others
  bool drop_duplicates = false;     ///< of edges with the same ends, only the one of smallest id stays
  bool normalize_features = false;  ///< divide each feature row by the sum of its absolute values, if not 0
  PartitionMethod partition = PartitionMethod::contiguous;
  std::uint64_t partition_seed = 0;
  /// Names of the fields to use instead of the default names, for example {{"features", "x"}}. Keys of node
  /// fields: "features", "labels", "train_mask", "val_mask", "test_mask"; of edge fields: "weight" and, for
  /// tasks on edges, the keys that EdgeData lists. A field that is named here must exist.
  std::map<std::string, std::string> fields = {};
  bool edge_data = false;  ///< reads NodeData::edge_data, for tasks on edges
  /// Of GraphData: the edge type whose lists of pairs are read, EdgeTypeData::lists; empty: none.
  std::string edge_type = {};
  /// Whether labels and types of edges are a part of it; if false, they are neither read nor checked.
  bool edge_labels = true, edge_types = true;
  bool edge_weights = true;  ///< otherwise edges have no weights, whatever fields they have
  bool features = true;  ///< otherwise NodeData::features has no columns, and no file is read for them
  /// Of NodeData: NodeData::sparse_features in place of features. Of GraphData and partition directories:
  /// fields of nodes that are sparse (NodeTypeData::sparse).
  SparseFeatures sparse_features = SparseFeatures::no;
  bool labels = true;    ///< otherwise NodeData has no labels and masks
  LabelType label_type = LabelType::classes;  ///< what the labels of nodes are
  /// With add_self_loops: a node that has self loops gets none and keeps the one of largest id, with its
  /// weight, as PyG's add_remaining_self_loops.
  bool remaining_self_loops = false;
  Index split = 0;  ///< of several splits, the one whose masks NodeData has

  /// The name of the field that is used as `what`: that of `fields`, or `what`.
  [[nodiscard]] std::string field(const std::string& what) const {
    const auto named = fields.find(what);
    return named == fields.end() ? what : named->second;
  }
};

inline void add_arguments(CollectiveCall& call, const DatasetOptions& options) {
  call.equal("add_reverse_edges", options.add_reverse_edges)
      .equal("add_self_loops", options.add_self_loops)
      .equal("remaining_self_loops", options.remaining_self_loops)
      .equal("drop_duplicates", options.drop_duplicates)
      .equal("normalize_features", options.normalize_features)
      .equal("partition", to_string(options.partition))
      .equal("partition_seed", options.partition_seed)
      .equal("edge_data", options.edge_data)
      .equal("edge_type", options.edge_type)
      .equal("edge_labels", options.edge_labels)
      .equal("edge_types", options.edge_types)
      .equal("edge_weights", options.edge_weights)
      .equal("features", options.features)
      .equal("sparse_features", to_string(options.sparse_features))
      .equal("labels", options.labels)
      .equal("type of the labels", to_string(options.label_type))
      .equal("split", options.split);
  for (const auto& [key, field] : options.fields) call.equal("name of a field", key).equal("field", field);
}

/// Local. Returns the field to use for `key`: the field names[key], or else the first existing field among
/// the default names, or nullptr if there is none. Throws InputError, beginning with `place`, if names[key]
/// does not exist.
const DataField* find_field(const std::vector<DataField>& fields,
                            const std::map<std::string, std::string>& names, const std::string& key,
                            std::initializer_list<const char*> usual, const std::string& place);

// Which fields of nodes become sparse rows.

/// Local. Returns whether the row of this node is counted for the choice: of N nodes at most 4,096 at even
/// distances of ids, so that the choice is the same for every number of ranks.
[[nodiscard]] bool is_sampled(Index node, Index num_nodes);

/// Local. Returns whether a field becomes sparse rows if `stored` values of `rows` sampled rows are not 0. It
/// does with `automatic` if a row has at least 64 columns and at most an eighth of the values are not 0, and
/// with `yes` if it has at least 2 columns.
[[nodiscard]] bool becomes_sparse(SparseFeatures sparse, const DataField& field, Index rows, Index stored);
}}  // namespace sar
