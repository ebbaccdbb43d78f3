// SPDX-License-Identifier: MIT

/// Chunks of edges written out as lists, and copies of rows between nodes, edges and chunks: the parts of
/// user-defined messages.
#pragma once

#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <algorithm>
#include <limits>
#include <optional>

namespace sar { inline namespace SAR_PRECISION {

/// A chunk of the edges of a stage.
struct EdgeBlock {
  Array<local_index> src;   ///< source row in the stage
  Array<local_index> dst;   ///< destination row of this rank
  Array<local_index> edge;  ///< index among this rank's edges

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(src.size()); }
};

/// The positions of a block, grouped by the row they belong to. If rows ascend with the positions, `order` is
/// empty and the positions of rows[i] are begin[i] .. begin[i + 1] - 1. Otherwise they are order[begin[i]] ..
/// order[begin[i + 1] - 1], ascending.
struct BlockGroups {
  Array<local_index> rows;
  Array<local_index> begin;
  Array<local_index> order;

  /// Build groups from rows in ascending order, each with its number of positions.
  void clear();
  void append(local_index row, Index positions);
  /// Builds groups in linear time, with a radix sort if the ids do not ascend.
  void build(const Array<local_index>& ids);
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(rows.size()); }
  [[nodiscard]] Index position(Index k) const { return order.empty() ? k : order[k]; }
  /// For the groups i of [first, last), with x [block size, width], computes
  ///
  ///     out[rows[i]] += scale[rows[i]] * sum of the rows of x at the positions of rows[i]
  ///
  /// `scale` null means 1. Precision and threading as in gather_sum.
  void add_rows_to(real* out, const Tensor& x, Index first, Index last, const real* scale = nullptr) const;
  /// Returns the sum of the rows of x at the positions of rows[i]: [1, width].
  [[nodiscard]] Tensor sum_of(const Tensor& x, Index i) const;

 private:
  void sort(const Array<local_index>& ids);

  Array<local_index> other_;
};

/// Splits the edges of a stage into chunks of a given maximum size.
class EdgeBlocks {
 public:
  explicit EdgeBlocks(Index max_size)
      : max_size_(std::min<Index>(max_size, std::numeric_limits<local_index>::max())) {}
  /// Orders the stage's edges by destination, then source, then id. Stages of a shard must come in ascending
  /// order.
  void by_destination(const Stage& stage);
  /// Orders the stage's edges by source. Stages may come in any order.
  void by_source(const Stage& stage);

  /// Number of chunks of the current stage. The stage must stay alive.
  [[nodiscard]] Index size() const noexcept { return (num_edges_ + max_size_ - 1) / max_size_; }
  /// Writes chunk b, and its positions grouped by the row that ascends: the destination or the source.
  /// Thread-safe.
  void write(Index b, EdgeBlock& block, BlockGroups& groups) const;

 private:
  template <class VisitRow>
  void for_rows(Index b, const VisitRow& visit_row) const;

  Index max_size_;
  EdgeCursor cursor_;
  std::optional<SourceOffsets> source_offsets_;  // of the rows, if they are those of the transpose
  const GraphShard* shard_ = nullptr;
  Index begin_ = 0;         // first source row of the stage
  bool by_source_ = false;  // rows are those of the transpose
  EdgeRanges rows_{};
  Index num_edges_ = 0;
};

/// Computes out[k] = scale[ids[k]] * x[ids[k]]. A row has `width` values, real or Bfloat16, and rows of x are
/// `stride` values apart; `scale` null means 1. Reads and writes one row per id and prefetches rows some ids
/// ahead.
template <class X>
void take_rows(const X* x, Index stride, Index width, const Array<local_index>& ids, const real* scale,
               real* out);
/// The same with the rows of x.
void take_rows(const TypedRows& x, const Array<local_index>& ids, const real* scale, real* out);

/// Sets out[ids[k]] = x[k] for distinct ids.
void put_rows(const Tensor& x, const Array<local_index>& ids, TypedRows& out);
}}  // namespace sar
