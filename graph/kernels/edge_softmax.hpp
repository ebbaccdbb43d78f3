/// The two steps that a softmax over the edges of a node consists of. A node is a destination, or a source:
///
///     EdgesToNodes    node[j] = combine(node[j], edge) over the edges of the node
///     NodesToEdges    edge    = f(node, edge)
///
/// Destinations are rows of this worker in memory that the kernel is given: both steps are forward passes in
/// which no rows travel. Sources have their rows where the driver has those of sources: values per source are
/// computed as a gradient is (backward), which goes to the owners, and are read as source rows are (forward).
/// Traffic per edge: one row of each operand.
#pragma once

#include <sar/graph/kernels/gather_sum.hpp>
#include <sar/graph/kernels/message_op.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <algorithm>
#include <optional>

namespace sar::inline SAR_PRECISION {

/// visit(row of the destination, or of the source in the stage; edge) for all edges of a stage, those of a
/// node by one thread and in a fixed order. By destination, the stage is a whole shard.
template <class Visit>
void for_edges_of_nodes(const Stage& stage, NormBy by, Index width, const Visit& visit) {
  const GraphShard& shard = stage.shard;
  const bool by_dst = by == NormBy::dst;
  std::optional<SourceOffsets> of_sources;
  if (!by_dst) of_sources.emplace(shard, stage.begin, stage.end);
  const local_index* offsets = by_dst ? shard.row_begin.data() : of_sources->data();
  const local_index* positions = by_dst ? nullptr : shard.transpose_positions().data();
  const Index rows = by_dst ? shard.num_rows() : stage.size();
  for_row_blocks(offsets, rows, 3 * width * static_cast<Index>(sizeof(real)), [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      const Index node = by_dst ? shard.dst_row(i) : i;
      for (Index k = offsets[i]; k < offsets[i + 1]; ++k) visit(node, shard.edge(by_dst ? k : positions[k]));
    }
  });
}

/// combine(real* node, Index edge) for all edges. By destination in a forward pass, by source in a backward
/// pass whose gradient starts from `start`.
template <class Combine>
class EdgesToNodes final : public ShardKernel {
 public:
  /// `nodes`: by destination [destinations, width], `start` at first; otherwise null.
  EdgesToNodes(NormBy by, Index width, real start, real* nodes, const Combine& combine)
      : by_(by), width_(width), start_(start), nodes_(nodes), combine_(combine) {}

  void accumulate(const Stage& stage) override { take(stage, nodes_); }
  [[nodiscard]] bool needs_source_in_backward() const override { return false; }
  void backward(const Stage& stage, real* grad_src, bool accumulate) override {
    if (!accumulate) std::fill_n(grad_src, stage.size() * width_, start_);
    take(stage, grad_src);
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

/// apply(const real* node, Index edge) for all edges, in a forward pass.
template <class Apply>
class NodesToEdges final : public ShardKernel {
 public:
  /// `nodes`: by destination [destinations, width]; otherwise null: the rows of the sources are.
  NodesToEdges(NormBy by, Index width, const real* nodes, const Apply& apply)
      : by_(by), width_(width), nodes_(nodes), apply_(apply) {}

  void accumulate(const Stage& stage) override {
    const real* nodes = by_ == NormBy::dst ? nodes_ : stage.rows;
    for_edges_of_nodes(stage, by_, width_,
                       [&](Index node, Index edge) { apply_(nodes + node * width_, edge); });
  }
  [[nodiscard]] bool needs_source_in_backward() const override { return false; }
  void backward(const Stage&, real*, bool) override {}

 private:
  NormBy by_;
  Index width_;
  const real* nodes_;
  Apply apply_;
};

}  // namespace sar
