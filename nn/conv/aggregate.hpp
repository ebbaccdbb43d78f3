// SPDX-License-Identifier: MIT

/// Helpers shared by the convolutions: edge-weighted messages, the order of product and aggregation, and
/// argument checks. Included by their .cpp files only.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/autograd/sparse_variable.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/node_features.hpp>

#include <string_view>
#include <utility>

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
inline bool multiplies_first(const Graph& graph, const Variable& rows, Index out_feats) {
  const Index in_feats = rows.shape().row_size();
  const auto more_rows = static_cast<double>(graph.num_global_src_nodes() - graph.num_global_dst_nodes());
  const auto saved =
      static_cast<double>(graph.num_global_edges()) * static_cast<double>(in_feats - out_feats);
  if (sparse_matrix(rows) != nullptr) return true;
  return multiplies_first(rows, out_feats) &&
         more_rows * static_cast<double>(in_feats) * static_cast<double>(out_feats) <= 20 * saved;
}

/// Returns the rows of the destinations among those of the sources, of a graph whose destinations are its
/// first sources: x itself if they are all of them on every rank. In a ReproducibleScope, a slice has a
/// record on all ranks, also where it is whole, and its rows stay in memory.
Variable dst_rows(const Graph& graph, Variable x);

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
inline void require_block(const Graph& graph, std::string_view layer) {
  require<ShapeError>(graph.is_block(), layer, " got features of one node type for a bipartite graph");
}

inline void require_num_rows(const Variable& x, Index rows, std::string_view what,
                             std::string_view part = {}) {
  require<ShapeError>(x.defined() && x.num_rows() == rows, what, part, " have shape ", x.shape(),
                      ", expected ", rows, " rows");
}

inline void require_rows(const Variable& x, Index rows, Index columns, std::string_view what,
                         std::string_view part = {}) {
  require<ShapeError>(x.shape() == Shape{rows, columns}, what, part, " have shape ", x.shape(),
                      ", expected [", rows, ", ", columns, "]");
}

/// Throws ShapeError unless the features at both ends match the graph and the widths of the layer.
void require_feats(const Graph& graph, const NodeFeatures& feat, const InFeatures& in_feats,
                   std::string_view layer);

/// Returns the features of the destinations.
inline Variable dst_feats(const Graph& graph, const NodeFeatures& feat) {
  return feat.pair() ? feat.dst : dst_rows(graph, feat.src);
}
}}  // namespace sar
