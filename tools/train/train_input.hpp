// SPDX-License-Identifier: MIT

/// The input of the first layer: features, or learnable rows.
#pragma once

#include "options/train_options.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {

/// The nodes of one type of a typed graph on this rank. Their rows come after those of the types before.
struct TypeRows {
  std::string name;
  Variable features = {};  ///< [local nodes of the type, width]; undefined: learnable rows (--embedding)
  PartitionBook book;
  Array<Index> original_ids;  ///< within the type; keys of the random draws of learnable rows
  bool ids_are_original = true;
  bool is_category = false;          ///< the type with labels
  Index first_row = 0, end_row = 0;  ///< the rows of its nodes are [first_row, end_row)
};

/// Collective. Dense features in bfloat16; sparse ones stay as they are. Throws InputError for a number that
/// overflows in bfloat16. NaN and infinities stay what they are.
[[nodiscard]] Variable bfloat16_features(const Communicator& comm, const Variable& features,
                                         const std::string& name);

/// The input rows of all nodes. If all types have features of one width, these are the rows. Otherwise rows
/// have a common width: a linear layer per type maps features, and types without features have learnable
/// rows. Learnable rows start Xavier-uniform with the gain of ReLU, as a matrix [nodes of the type, width]
/// (DGL's R-GCN example). Parameters: `<type>.{weight, bias}` of the linear layers. Learnable rows are not
/// parameters; step() updates them.
class NodeInput : public Module {
 public:
  /// Collective. The input of a homogeneous graph: `features`, or data.input() if they are undefined. With
  /// --embedding, data.features become the learnable rows.
  NodeInput(const Communicator& comm, const TrainOptions& o, NodeData& data, const Variable& features);
  /// Collective.
  NodeInput(const Communicator& comm, const TrainOptions& o, std::span<const TypeRows> types, Generator& gen);

  /// Of a row.
  [[nodiscard]] Index width() const noexcept { return width_; }
  [[nodiscard]] bool has_parameters() const noexcept { return has_parameters_; }
  /// Returns the widths of the features that linear layers map, by node type.
  [[nodiscard]] std::map<std::string, Index> widths() const;
  /// Returns how many values of sparse features are stored on this rank, and how many there would be in dense
  /// rows.
  [[nodiscard]] std::pair<Index, Index> stored_values() const;
  /// Returns whether all rows are sparse.
  [[nodiscard]] bool is_sparse() const;
  [[nodiscard]] bool has_learnable_rows() const noexcept { return optimizer_ != nullptr; }

  /// Collective. [local nodes, width()].
  [[nodiscard]] Variable all();
  /// Collective. Returns some local rows [rows, width()]; `rows` must not change until the backward pass
  /// has finished.
  [[nodiscard]] Variable of(const Array<Index>& local_rows);

  /// Collective. Updates the learnable rows that have gradients and clears the gradients.
  void step(double lr);
  /// Collective. Writes a directory with the learnable rows and their optimizer state; replaces an existing
  /// one.
  void save(const std::string& path) const;
  /// Collective. Throws InputError as SparseOptimizer::load.
  void load(const std::string& path) { optimizer_->load(path); }
  /// Collective. Writes the learnable rows of each type beside the weights file `weights`, as
  /// `<weights>.rows.<type>.npy` [nodes of the type, width]; row v belongs to original node v.
  void save_rows(const std::string& weights) const;
  /// Collective. Reads these files. Throws InputError for a missing or damaged file, another shape and
  /// numbers that are not finite; all rows are then as they were.
  void load_rows(const std::string& weights);

 private:
  struct Type {
    Type(std::string of, Index rows_of_rank) : name(std::move(of)), num_rows(rows_of_rank) {}
    std::string name;
    Index num_rows;
    Variable features;
    std::unique_ptr<DistributedEmbedding> rows;  // in the place of features
    std::unique_ptr<Linear> linear;              // of features; null: as they are
  };
  /// Adds learnable rows, initialized uniformly in [-bound, bound].
  void add_learnable_rows(const Communicator& comm, Type& type, const PartitionBook& book,
                          std::span<const Index> original_ids, double bound);
  void make_optimizer(const TrainOptions& o);
  [[nodiscard]] Variable all_of(Type& type);
  /// Returns the rows with these indices within the type.
  [[nodiscard]] Variable rows_of(Type& type, Array<Index> rows);

  Generator gen_;  // of learnable rows
  std::vector<Type> types_;
  std::unique_ptr<SparseOptimizer> optimizer_;
  Index width_ = 0;
  bool has_parameters_ = false;
};

}  // namespace sar::tools
