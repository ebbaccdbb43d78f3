// SPDX-License-Identifier: MIT

/// Helpers shared by the convolutions: edge-weighted messages, the order of product and aggregation, and
/// argument checks. Included by their .cpp files only.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/autograd/sparse_variable.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/node_features.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the message u, or u times the edge weight if there is one.
inline Message message(Variable u, const Variable& edge_weight) {
  return edge_weight.defined() ? fn::u_mul_e(std::move(u), edge_weight) : fn::copy_u(std::move(u));
}

/// Returns whether a layer should multiply by its weight before it aggregates. It should if the product makes
/// rows narrower, and if the rows are sparse, because their aggregates are not. At equal widths it should if
/// the rows require a gradient: the gradient of the weight then needs the input rows but not the aggregate.
inline bool multiplies_first(const Variable& rows, Index out_feats) {
  const Index in_feats = rows.shape().row_size();
  return sparse_matrix(rows) != nullptr || in_feats > out_feats ||
         (in_feats == out_feats && rows.requires_grad());
}

/// Local. Returns the same decision for a graph with many more sources than destinations, such as a block.
/// There the product is applied to every source row, which may cost more than narrower rows save. The cost
/// model counts one gathered value as about 20 multiplications. The result is the same on every rank.
inline bool multiplies_first(const GraphShardManager& graph, const Variable& rows, Index out_feats) {
  const Index in_feats = rows.shape().row_size();
  const auto more_rows = static_cast<double>(graph.num_global_src_nodes() - graph.num_global_dst_nodes());
  const auto saved =
      static_cast<double>(graph.num_global_edges()) * static_cast<double>(in_feats - out_feats);
  if (sparse_matrix(rows) != nullptr) return true;
  return multiplies_first(rows, out_feats) &&
         more_rows * static_cast<double>(in_feats) * static_cast<double>(out_feats) <= 20 * saved;
}

inline Variable first_rows(const Variable& x, Index rows) {
  return slice_rows(x, 0, rows);
}

/// Returns a + b of two parameters, either of which may be undefined.
inline Variable sum_of(const Variable& a, const Variable& b) {
  return !a.defined() ? b : !b.defined() ? a : add(a, b);
}

/// Returns a column [n] with f(degree) of each of the n degrees.
template <class F>
Tensor degree_column(const Array<Index>& degrees, const F& f) {
  Tensor column({static_cast<Index>(degrees.size())});
  for (Index i = 0; i < column.size(); ++i)
    column.data()[i] = static_cast<real>(f(static_cast<double>(degrees[i])));
  return column;
}

/// Overwrites the initial weight of a Linear.
inline void start_weight(const Linear& fc, const Tensor& value) {
  Variable(fc.weight()).value().copy_from(value);
}

// ---- Checks of a layer's arguments. They throw ShapeError and are local; layers call them inside
// Communicator::agree.

/// Throws ShapeError if the graph is bipartite: features of a single node type cannot serve both ends.
inline void require_block(const GraphShardManager& graph, std::string_view layer) {
  require<ShapeError>(graph.is_block(), layer, " got features of one node type for a bipartite graph");
}

inline void require_num_rows(const Variable& x, Index rows, std::string_view what) {
  require<ShapeError>(x.defined() && x.num_rows() == rows, what, " have shape ", x.shape(), ", expected ",
                      rows, " rows");
}

inline void require_rows(const Variable& x, Index rows, Index columns, std::string_view what,
                         std::string_view part = {}) {
  require<ShapeError>(x.shape() == Shape{rows, columns}, what, part, " have shape ", x.shape(),
                      ", expected [", rows, ", ", columns, "]");
}

/// Throws ShapeError unless the features at both ends match the graph and the widths of the layer.
void require_feats(const GraphShardManager& graph, const NodeFeatures& feat, const InFeatures& in_feats,
                   std::string_view layer);

/// Returns the features of the destinations.
inline Variable dst_feats(const GraphShardManager& graph, const NodeFeatures& feat) {
  return feat.pair() ? feat.dst : first_rows(feat.src, graph.num_dst_nodes());
}

// A cache for the aggregate of constant features.

/// Collective. Caches the aggregate of constant rows between calls. It implements the option `cached` of
/// SAGEConv, GraphConv, GINConv and the multi-hop convolutions, for layers whose aggregate does not depend
/// on dropout or parameters. The result is exact: rows are fetched and aggregated as without the cache, but
/// only once.
///
/// A different graph, different graph options or a different tensor on any rank invalidates the cache on
/// all ranks. Rows that require a gradient are rejected. Rows that were overwritten in place are rejected
/// too; a fingerprint of the values detects them.
class AggregateCache {
 public:
  /// `layer` is the layer's name in error messages.
  AggregateCache(bool enabled, std::string layer) : enabled_(enabled), layer_(std::move(layer)) {}

  [[nodiscard]] bool enabled() const noexcept { return enabled_; }

  /// Returns the cached value if the graph and the operands are those of the previous call, and otherwise
  /// calls aggregate(), which must be a function of the operands on this graph. Undefined operands are
  /// ignored. Layers call this inside Communicator::agree. Throws InputError on every rank if an operand
  /// requires a gradient, or if it is the tensor of the previous call with changed values.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph,
                                    std::initializer_list<const Variable*> operands,
                                    FunctionRef<Variable()> aggregate);

 private:
  /// An operand of the cached value. The tensor is kept alive so that no other tensor can get its address.
  struct Constant {
    TypedRows rows;
    std::uint64_t fingerprint = 0;
  };
  /// Returns whether the cached value belongs to these operands. Throws InputError as above.
  [[nodiscard]] bool is_valid(const GraphShardManager& graph,
                              std::initializer_list<const Variable*> operands) const;

  bool enabled_;
  std::string layer_;
  std::weak_ptr<const ShardedGraph> graph_;
  GraphOptions options_;
  std::vector<Constant> operands_;
  TypedRows value_;  // undefined: the cache is empty
};

}}  // namespace sar
