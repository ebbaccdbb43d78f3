// SPDX-License-Identifier: MIT

/// The two steps of a softmax over the edges of a node, where the node is a destination or a source:
///
///     EdgesToNodes    node[j] = combine(node[j], edge) over the edges of the node
///     NodesToEdges    edge    = f(node, edge)
///
/// Rows of destinations are in local memory that the kernel is given: both steps are forward passes without
/// an exchange. Rows of sources are handled by the driver: EdgesToNodes computes them like a gradient
/// (backward), which is sent to the owners, and NodesToEdges reads them like source rows (forward). Bytes per
/// edge: one row of each operand.
#pragma once

#include <sar/graph/kernels/edge_walk.hpp>
#include <sar/graph/kernels/message_op.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

/// Calls visit(row, edge) for all edges of a stage, where `row` is the destination, or the source row in the
/// stage. The edges of a node are visited by one thread in a fixed order. By destination, the stage must be a
/// whole shard.
template <class Visit>
void for_edges_of_nodes(const Stage& stage, NormBy by, Index width, const Visit& visit) {
  EdgeWalk walk;
  const EdgeRows rows = by == NormBy::dst ? walk.by_destination(stage) : walk.by_source(stage);
  for_row_blocks(rows, 3 * width * static_cast<Index>(sizeof(real)), [&](Index first, Index last) {
    for (Index i = first; i < last; ++i)
      for (Index k = rows.begin[i]; k < rows.end[i]; ++k) visit(rows.row(i), rows.edge(k));
  });
}

/// Calls combine(real* node, Index edge) for all edges: by destination in a forward pass, by source in a
/// backward pass whose gradient is initialized with `start`.
template <class Combine>
class EdgesToNodes final : public ShardKernel {
 public:
  /// `nodes`: by destination, [destinations, width] filled with `start`; by source, null.
  EdgesToNodes(NormBy by, Index width, real start, real* nodes, const Combine& combine)
      : by_(by), width_(width), start_(start), nodes_(nodes), combine_(combine) {}

  void accumulate(const Stage& stage) override { take(stage, nodes_); }
  [[nodiscard]] bool needs_source_in_backward() const override { return false; }
  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override {
    if (!accumulate) std::fill_n(grad_src.reals(), stage.size() * width_, start_);
    take(stage, grad_src.reals());
  }

 private:
  void take(const Stage& stage, real* nodes) {
    for_edges_of_nodes(stage, by_, width_,
                       [&](Index node, Index edge) { combine_(nodes + node * width_, edge); });
  }

  NormBy by_;
  Index width_;
  real start_;
  real* nodes_;
  Combine combine_;
};

/// Calls apply(const real* node, Index edge) for all edges, in a forward pass.
template <class Apply>
class NodesToEdges final : public ShardKernel {
 public:
  /// `nodes`: by destination, [destinations, width]; by source, null: the rows of the stage are read.
  NodesToEdges(NormBy by, Index width, const real* nodes, const Apply& apply)
      : by_(by), width_(width), nodes_(nodes), apply_(apply) {}

  void accumulate(const Stage& stage) override {
    const real* nodes = by_ == NormBy::dst ? nodes_ : stage.rows.reals();
    for_edges_of_nodes(stage, by_, width_,
                       [&](Index node, Index edge) { apply_(nodes + node * width_, edge); });
  }
  [[nodiscard]] bool needs_source_in_backward() const override { return false; }
  void backward(const Stage&, TypedNumbers, bool) override {}

 private:
  NormBy by_;
  Index width_;
  const real* nodes_;
  Apply apply_;
};

}}  // namespace sar
