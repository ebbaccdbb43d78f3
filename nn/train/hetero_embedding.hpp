// SPDX-License-Identifier: MIT

/// Learnable rows for the node types of a heterogeneous graph that have no features.
///
///     HeteroEmbedding embedding(graph, {"author", "field"}, 64, gen);
///     SparseAdam sparse(embedding.refs(), {.lr = 0.01});
///     ...
///     Tape tape;
///     HeteroEmbedding::Rows x = embedding();                       // of all local nodes
///     x["paper"] = features;
///     tape.backward(loss(model(graph, x)));
///     sparse.step();
///     sparse.zero_grad();
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/embedding.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Equivalent to dgl.nn.HeteroEmbedding, distributed over all ranks: one DistributedEmbedding per type. The
/// type is its name, also in files. As in DGL, the rows are not parameters of a Module; sparse optimizers
/// update them. If every row has a gradient in every step, a sparse optimizer does the same as the dense one.
class HeteroEmbedding {
 public:
  using Rows = std::map<std::string, Variable>;  ///< keyed by type

  /// Collective. Creates a row for each node of these types, uniform in [-bound, bound]. The random draws
  /// are keyed by the original id within the type, so that they do not depend on the number of ranks or the
  /// partition. Throws InputError on every rank for an unknown type or a width below 1.
  HeteroEmbedding(const Graph& graph, const std::vector<std::string>& types, Index width, Generator& gen,
                  double bound = 1);

  /// Local. Returns the rows of this rank's nodes, [local nodes of the type, width] for each type.
  [[nodiscard]] Rows operator()();
  /// Collective. Returns rows by global id within the type: row i of a type's result, [ids.size(), width],
  /// is row ids[i]. Ids may belong to any rank; the types must be the same on every rank. Throws InputError
  /// on every rank for a type without rows here.
  [[nodiscard]] Rows operator()(const std::map<std::string, std::span<const Index>>& ids);

  /// Local. Throws InputError for a type without rows here.
  [[nodiscard]] DistributedEmbedding& operator[](const std::string& type);
  /// Returns the embeddings for a sparse optimizer, in the order of the types' names.
  [[nodiscard]] EmbeddingRefs refs();

 private:
  Communicator comm_;
  std::map<std::string, std::optional<DistributedEmbedding>> of_type_;
};

}}  // namespace sar
