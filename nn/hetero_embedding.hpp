/// Learnable rows for the node types of a graph that have no features.
///
///     HeteroEmbedding embedding(graph, {"author", "field"}, 64, gen);
///     SparseAdam sparse(embedding.refs(), {.lr = 0.01});
///     ...
///     Tape tape;
///     HeteroEmbedding::Rows x = embedding();                       // of all nodes of this rank
///     x["paper"] = features;
///     tape.backward(loss(model(graph, x)));
///     sparse.step();
///     sparse.zero_grad();
#pragma once

#include <sar/graph/hetero/hetero_graph.hpp>
#include <sar/nn/distributed_embedding.hpp>
#include <sar/nn/sparse_optimizer.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// As dgl.nn.HeteroEmbedding, spread over all ranks: a DistributedEmbedding for each type, whose name, also
/// that of files, is the type. As there, the rows are no parameters of a Module, and sparse optimizers move
/// them: where every row has a gradient in every step, these do what the dense ones do.
class HeteroEmbedding {
 public:
  using Rows = std::map<std::string, Variable>;  ///< by type

  /// A row for each node of these types, uniform in [-bound, bound], drawn for the original id within the
  /// type: the same for any number of ranks and any partition. Collective. Throws InputError, the same on
  /// every rank, for an unknown type, and for a width below 1.
  HeteroEmbedding(const HeteroGraph& graph, const std::vector<std::string>& types, Index width,
                  Generator& gen, double bound = 1);

  /// The rows of this rank's nodes, [local nodes of the type, width] for each type. Local.
  [[nodiscard]] Rows operator()();
  /// Row i of a type's result, [ids.size(), width], is row ids[i] of the type; ids are partitioned ids within
  /// the type, of nodes of any rank. The types are the same on every rank. Collective. Throws InputError, the
  /// same on every rank, for a type without rows here.
  [[nodiscard]] Rows operator()(const std::map<std::string, std::span<const Index>>& ids);

  /// Throws InputError for a type without rows here. Local.
  [[nodiscard]] DistributedEmbedding& operator[](const std::string& type);
  /// For a sparse optimizer, in the order of the types' names.
  [[nodiscard]] EmbeddingRefs refs();

  /// Puts row i of `whole`, [nodes of the type, width], to the node of original id i: in DGL,
  /// `whole` is embeds.TYPE.weight. Collective. Throws, the same on every rank, InputError for a type without
  /// rows here, ShapeError for another shape.
  void set_weight(const std::string& type, const Tensor& whole);

 private:
  Communicator comm_;
  std::map<std::string, std::optional<DistributedEmbedding>> of_type_;
};

}  // namespace sar::inline SAR_PRECISION
