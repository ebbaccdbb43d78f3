/// What the convolutions have in common. For their .cpp files only.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/node_features.hpp>

#include <string_view>
#include <utility>

namespace sar::inline SAR_PRECISION {

/// u, or u times the edge weight when there is one.
inline Message message(Variable u, const Variable& edge_weight) {
  return edge_weight.defined() ? fn::u_mul_e(std::move(u), edge_weight) : fn::copy_u(std::move(u));
}

/// Whether a layer multiplies by its weight before it aggregates: when that makes rows narrower, and at equal
/// widths when the rows want a gradient, because the gradient of the weight then needs the rows but no
/// aggregate.
inline bool multiplies_first(const Variable& rows, Index out_feats) {
  const Index in_feats = rows.shape().row_size();
  return in_feats > out_feats || (in_feats == out_feats && rows.requires_grad());
}

/// The same on a graph that may have many more sources than destinations, as a block: not where the product
/// of all of them costs more than narrower rows save. A number that is gathered takes as long as about 20
/// multiplications. The same on every rank.
inline bool multiplies_first(const GraphShardManager& graph, const Variable& rows, Index out_feats) {
  const Index in_feats = rows.shape().row_size();
  const auto more_rows = static_cast<double>(graph.num_global_src_nodes() - graph.num_global_dst_nodes());
  const auto saved =
      static_cast<double>(graph.num_global_edges()) * static_cast<double>(in_feats - out_feats);
  return multiplies_first(rows, out_feats) &&
         more_rows * static_cast<double>(in_feats) * static_cast<double>(out_feats) <= 20 * saved;
}

inline Variable first_rows(const Variable& x, Index rows) {
  return x.num_rows() == rows ? x : slice_rows(x, 0, rows);
}

/// A column [n] of f(degree) for each of n degrees.
template <class F>
Tensor degree_column(const Array<Index>& degrees, const F& f) {
  Tensor column({static_cast<Index>(degrees.size())});
  for (Index i = 0; i < column.size(); ++i)
    column.data()[i] = static_cast<real>(f(static_cast<double>(degrees[i])));
  return column;
}

/// Overwrites the values that Linear has started its weight with.
inline void start_weight(const Linear& fc, const Tensor& value) {
  Variable(fc.weight()).value().copy_from(value);
}

// ---- checks of a layer's arguments. They throw ShapeError. Local; a layer makes them in
// Communicator::agree.

/// Refuses features of one node type for both ends of a bipartite graph.
inline void require_block(const GraphShardManager& graph, std::string_view layer) {
  require<ShapeError>(graph.is_block(), layer, " got features of one node type for a bipartite graph");
}

inline void require_num_rows(const Variable& x, Index rows, std::string_view what) {
  require<ShapeError>(x.defined() && x.num_rows() == rows, what, " have shape ", x.shape(), ", expected ",
                      rows, " rows");
}

inline void require_rows(const Variable& x, Index rows, Index columns, std::string_view what,
                         std::string_view part = {}) {
  require<ShapeError>(x.shape() == Shape{rows, columns}, what, part, " have shape ", x.shape(), ", expected [",
                      rows, ", ", columns, "]");
}

/// Features at both ends that fit the graph and the layer's widths.
void require_feats(const GraphShardManager& graph, const NodeFeatures& feat, const InFeatures& in_feats,
                   std::string_view layer);

/// Features of the destinations.
inline Variable dst_feats(const GraphShardManager& graph, const NodeFeatures& feat) {
  return feat.pair() ? feat.dst : first_rows(feat.src, graph.num_dst_nodes());
}

}  // namespace sar
