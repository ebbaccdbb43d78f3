/// Blocks of edges written out as lists, and the moves of rows between nodes, edges and blocks: what
/// user-defined messages are made of.
#pragma once

#include <sar/core/tensor.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <algorithm>
#include <limits>
#include <optional>

namespace sar::inline SAR_PRECISION {

/// Edges of a stage.
struct EdgeBlock {
  Array<local_index> src;   ///< row of the stage
  Array<local_index> dst;   ///< destination row of the worker
  Array<local_index> edge;  ///< number among the worker's edges

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(src.size()); }
  void resize(Index n);
};

/// The positions of a block by the row they belong to. Where rows ascend with the positions, those of rows[i]
/// are begin[i] .. begin[i + 1] - 1 and there is no order; else they are order[begin[i]] ..
/// order[begin[i + 1] - 1], ascending.
struct BlockGroups {
  Array<local_index> rows;
  Array<local_index> begin;
  Array<local_index> order;

  /// Of rows in ascending order, each with its number of positions.
  void clear();
  void append(local_index row, Index positions);
  /// Linear time: radix sort where the ids do not ascend already.
  void build(const Array<local_index>& ids);
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(rows.size()); }
  [[nodiscard]] Index position(Index k) const { return order.empty() ? k : order[k]; }
  /// out[rows[i]] += scale[rows[i]] * sum of the rows of x [block size, width] at the positions of rows[i]
  /// for groups i of [first, last); `scale` null: 1. As gather_sum.
  void add_rows_to(real* out, const Tensor& x, Index first, Index last, const real* scale = nullptr) const;
  /// The sum of the rows of x at the positions of rows[i]: [1, width].
  [[nodiscard]] Tensor sum_of(const Tensor& x, Index i) const;

 private:
  void sort(const Array<local_index>& ids);

  Array<local_index> other_;
};

/// The edges of a stage, divided into blocks of at most so many.
class EdgeBlocks {
 public:
  explicit EdgeBlocks(Index max_size)
      : max_size_(std::min<Index>(max_size, std::numeric_limits<local_index>::max())) {}
  /// Divides the stage's edges by destination, then source, then id. The stages of a shard come in ascending
  /// order.
  void by_destination(const Stage& stage);
  /// Divides them by source. Stages come in any order.
  void by_source(const Stage& stage);

  /// Blocks of the stage that was divided last, which must live.
  [[nodiscard]] Index size() const noexcept { return (num_edges_ + max_size_ - 1) / max_size_; }
  /// Writes out block b, and its positions by the row that ascends: the destination or the source. Several
  /// threads may do so at once.
  void write(Index b, EdgeBlock& block, BlockGroups& groups) const;

 private:
  template <class VisitRow>
  void for_rows(Index b, const VisitRow& visit_row) const;

  Index max_size_;
  EdgeCursor cursor_;
  std::optional<SourceOffsets> source_offsets_;  // of the rows, where they are those of the transpose
  const GraphShard* shard_ = nullptr;
  Index begin_ = 0;         // of the stage
  bool by_source_ = false;  // rows are those of the transpose
  EdgeRanges rows_{};
  Index num_edges_ = 0;
};

/// out[k] = scale[ids[k]] * x[ids[k]], where a row is `width` of the `stride` numbers from one row of x to
/// the next; `scale` null: 1. Traffic: a row read and a row written per id, rows requested some ids ahead.
void take_rows(const real* x, Index stride, Index width, const Array<local_index>& ids, const real* scale,
               real* out);

/// out[ids[k]] = x[k] for distinct ids.
void put_rows(const Tensor& x, const Array<local_index>& ids, real* out);

}  // namespace sar
