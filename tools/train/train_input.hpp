/// What the first layer of a network reads of the nodes.
#pragma once

#include "train_options.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {

/// The nodes of one type on this rank: their rows follow those of the types before.
struct NodeTypeInput {
  std::string name;
  Tensor features;  ///< [local nodes of the type, width]; undefined: learnable rows (--embedding)
  PartitionBook book;
  Array<Index> original_ids;  ///< of learnable rows: key their draws
};

/// Rows of all nodes. Where the types have features of one width, these; otherwise rows of a common width:
/// features through a linear layer of their type, and learnable rows for types without features. These start
/// Xavier-uniform with ReLU's gain as a matrix [nodes of the type, width], as in DGL's example of R-GCN.
/// Parameters: `<type>.{weight, bias}` of the linear layers. Learnable rows are no parameters: step() moves
/// them.
class NodeInput : public Module {
 public:
  /// Of a homogeneous graph. With --embedding, the learnable rows are data.features from now on. Collective.
  NodeInput(const Communicator& comm, const TrainOptions& o, NodeData& data);
  /// Collective.
  NodeInput(const Communicator& comm, const TrainOptions& o, std::vector<NodeTypeInput> types,
            Generator& gen);

  /// Of a row.
  [[nodiscard]] Index width() const noexcept { return width_; }
  [[nodiscard]] bool has_parameters() const noexcept { return has_parameters_; }
  [[nodiscard]] bool has_learnable_rows() const noexcept { return optimizer_ != nullptr; }

  /// [local nodes, width()]. Collective.
  [[nodiscard]] Variable all();
  /// Those of some local rows, which stay as they are until the backward pass is over. Collective.
  [[nodiscard]] Variable of(const Array<Index>& local_rows);

  /// Moves the learnable rows that have a gradient, which is forgotten then. Collective.
  void step(double lr);
  /// A directory with the learnable rows and the state of their optimizer; one that exists is replaced.
  /// Collective.
  void save(const std::string& path) const;
  /// Collective. Throws InputError as SparseOptimizer::load.
  void load(const std::string& path) { optimizer_->load(path); }

 private:
  struct Type {
    Type(std::string of, Index rows_of_rank) : name(std::move(of)), num_rows(rows_of_rank) {}
    std::string name;
    Index num_rows;
    Tensor features;
    std::unique_ptr<DistributedEmbedding> rows;  // in the place of features
    std::unique_ptr<Linear> linear;              // of features; null: as they are
  };
  /// Uniform in [-bound, bound].
  void add_learnable_rows(const Communicator& comm, Type& type, const PartitionBook& book,
                          std::span<const Index> original_ids, double bound);
  void make_optimizer(const TrainOptions& o);
  [[nodiscard]] Variable all_of(Type& type);
  /// Rows by their numbers within the type.
  [[nodiscard]] Variable rows_of(Type& type, Array<Index> rows);

  Generator gen_;  // of learnable rows
  std::vector<Type> types_;
  std::unique_ptr<SparseOptimizer> optimizer_;
  Index width_ = 0;
  bool has_parameters_ = false;
};

}  // namespace sar::tools
