/// Blocks of edges written out as lists, and the moves of rows between nodes, edges and blocks: what
/// user-defined messages are made of.
#pragma once

#include <sar/core/tensor.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// Edges of a stage.
struct EdgeBlock {
  Array<local_index> src;   ///< row of the stage
  Array<local_index> dst;   ///< destination row of the worker
  Array<local_index> edge;  ///< number among the worker's edges

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(src.size()); }
  void resize(Index n);
};

/// The edges of stages, at most so many at a time.
class EdgeBlocks {
 public:
  explicit EdgeBlocks(Index max_size) : max_size_(max_size) {}
  /// Visits the stage's edges by destination, then source, then id. The stages of a shard come in ascending
  /// order.
  void by_destination(const Stage& stage, FunctionRef<void(const EdgeBlock&)> visit);
  /// Visits them by source. Stages come in any order.
  void by_source(const Stage& stage, FunctionRef<void(const EdgeBlock&)> visit);

 private:
  Index max_size_;
  EdgeCursor cursor_;
  EdgeBlock block_;
};

/// The positions of a block by the row they belong to: those of rows[i] are order[begin[i]] ..
/// order[begin[i + 1] - 1], ascending.
struct BlockGroups {
  Array<local_index> rows;
  Array<local_index> begin;
  Array<local_index> order;

  /// Linear time: radix sort where the ids do not ascend already.
  void build(const Array<local_index>& ids);
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(rows.size()); }
  /// out[rows[i]] += scale[rows[i]] * sum of the rows of x [block size, width] at the positions of rows[i];
  /// `scale` null: 1. As gather_sum.
  void add_rows_to(real* out, const Tensor& x, const real* scale = nullptr) const;

 private:
  Array<local_index> other_;
};

/// out[k] = scale[ids[k]] * x[ids[k]], where a row is `width` of the `stride` numbers from one row of x to
/// the next; `scale` null: 1. Traffic: a row read and a row written per id, rows requested some ids ahead.
void take_rows(const real* x, Index stride, Index width, const Array<local_index>& ids, const real* scale,
               real* out);

/// out[ids[k]] = x[k] for distinct ids.
void put_rows(const Tensor& x, const Array<local_index>& ids, real* out);

}  // namespace sar
