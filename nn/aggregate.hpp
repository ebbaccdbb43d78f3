/// What the convolutions have in common, for their .cpp files.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/graph_shard_manager.hpp>

#include <utility>

namespace sar {

/// u, or u times the edge weight when there is one.
inline Message message(Variable u, const Variable& edge_weight) {
  return edge_weight.defined() ? fn::u_mul_e(std::move(u), edge_weight) : fn::copy_u(std::move(u));
}

/// Whether the product with a weight goes before the aggregation: it does when that makes rows narrower, and
/// at equal widths when the rows want a gradient, because the gradient of the weight then needs the rows but
/// no aggregate.
inline bool multiplies_first(const Variable& rows, Index out_feats) {
  const Index in_feats = rows.value().row_size();
  return in_feats > out_feats || (in_feats == out_feats && rows.requires_grad());
}

inline Variable first_rows(const Variable& x, Index rows) {
  return x.num_rows() == rows ? x : slice_rows(x, 0, rows);
}

/// A column [n] of f(degree) for each of n degrees.
template <class F>
Tensor degree_column(const Array<Index>& degrees, const F& f) {
  Tensor column({static_cast<Index>(degrees.size())});
  for (std::size_t i = 0; i < degrees.size(); ++i)
    column.data()[i] = static_cast<real>(f(static_cast<double>(degrees[i])));
  return column;
}

/// base + x W^T in the memory of `base` when nobody else holds it. base [n, out], x [n, in], weight W [out,
/// in]. Keeps x if the weight wants a gradient and the weight if x does.
Variable add_linear(Variable base, const Variable& x, const Variable& weight);

/// Refuses to take one kind of features for both ends of a graph of two kinds of nodes.
inline void require_one_kind(const GraphShardManager& graph, const char* layer) {
  require<ShapeError>(graph.dst_is_prefix(), layer,
                      " got features of one kind of nodes for a bipartite graph");
}

inline void require_num_rows(const Variable& x, Index rows, const char* what) {
  require<ShapeError>(x.defined() && x.num_rows() == rows, what, " have shape ", x.shape(), ", expected ",
                      rows, " rows");
}

inline void require_rows(const Variable& x, Index rows, Index columns, const char* what) {
  require<ShapeError>(x.shape() == Shape{rows, columns}, what, " have shape ", x.shape(), ", expected [",
                      rows, ", ", columns, "]");
}

}  // namespace sar
