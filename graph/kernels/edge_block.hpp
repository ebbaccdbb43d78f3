// SPDX-License-Identifier: MIT

/// Chunks of edges written out as lists, and copies of rows between nodes, edges and chunks: the parts of
/// user-defined messages.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/typed_rows.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/kernels/gather_sum.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

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
  /// `scale` null means 1. `out` has reals or exact sums. Precision and threading as in gather_sum.
  void add_rows_to(TypedNumbers out, const Tensor& x, Index first, Index last,
                   const real* scale = nullptr) const;
  /// Returns what add_rows_to() would add to row rows[i] of an `out` of this type: [1, width].
  [[nodiscard]] TypedRows sum_of(const Tensor& x, Index i, NumberType type,
                                 const real* scale = nullptr) const;

 private:
  [[nodiscard]] GatherSum sums_of(const Tensor& x, Index first, Index last, TypedNumbers out) const;
  void sort(const Array<local_index>& ids);

  Array<local_index> other_;
};

/// Splits the edges of a stage into chunks of a given maximum size.
class EdgeBlocks {
 public:
  /// Whether edges of one row may be in several chunks. If not, a chunk has more than the maximum where one
  /// row has more.
  enum class Rows { split, whole };
  explicit EdgeBlocks(Index max_size, Rows rows = Rows::split)
      : max_size_(std::min<Index>(max_size, std::numeric_limits<local_index>::max())), of_rows_(rows) {}
  /// Orders the stage's edges by destination, then source, then id. Stages of a shard must come in ascending
  /// order.
  void by_destination(const Stage& stage);
  /// Orders the stage's edges by source. Stages may come in any order.
  void by_source(const Stage& stage);

  /// Number of chunks of the current stage. The stage must stay alive.
  [[nodiscard]] Index size() const noexcept {
    return of_rows_ == Rows::whole ? std::ssize(first_) - 1 : (num_edges_ + max_size_ - 1) / max_size_;
  }
  /// Writes chunk b, and its positions grouped by the row that ascends: the destination or the source.
  /// Thread-safe.
  void write(Index b, EdgeBlock& block, BlockGroups& groups) const;
  /// Calls compute(work, b) for all chunks b, `at_once` at a time in parallel, and after each time add(works)
  /// for these chunks in their order, until it returns false. `works` keeps what a chunk needs.
  template <class Work, class Compute, class Add>
  void for_each(PassVector<Work>& works, Index at_once, const Compute& compute, const Add& add) const {
    at_once = std::min(at_once, size());
    if (std::ssize(works) < at_once) works = PassVector<Work>(at_once);
    for (Index first = 0; first < size(); first += at_once) {
      const std::span some = std::span(works).first(std::min(at_once, size() - first));
      parallel_for(std::ssize(some), 1, [&](Index i, Index) { compute(some[i], first + i); });
      if (!add(some)) return;
    }
  }

 private:
  void divide();
  /// The first edge of chunk b, counted from that of the stage; that of the chunk after the last: their
  /// number.
  [[nodiscard]] Index first_edge(Index b) const {
    return of_rows_ == Rows::whole ? first_[b] : std::min(b * max_size_, num_edges_);
  }
  template <class VisitRow>
  void for_rows(Index b, const VisitRow& visit_row) const;

  Index max_size_;
  Rows of_rows_;
  Array<Index> first_{0};  // of whole rows: first_edge() of each chunk
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
