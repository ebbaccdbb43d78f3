// SPDX-License-Identifier: MIT

/// Finds the edges of a stage. A shard is processed in several stages of ascending source rows; the local
/// shard may also be processed in parts of its destination rows.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The edges whose sources are in a stage. The i-th destination row has the edges [begin[i], end[i]).
struct EdgeRanges {
  Index num_rows;
  const local_index* rows;  ///< destination row (of this rank) of each row; null: first_row + i
  const local_index* begin;
  const local_index* end;
  const local_index* before;  ///< number of edges in the rows before each row, for for_row_blocks()
  Index first_row = 0;        ///< 0 unless rows is null

  [[nodiscard]] Index row(Index i) const { return rows != nullptr ? rows[i] : first_row + i; }
};

class EdgeCursor {
 public:
  /// Returns the edges of a stage; valid until the next call. For a whole shard, all its rows, which are all
  /// destinations if every_row is set. For a stage of some source rows, the rows with edges in it, found by a
  /// scan of 4 bytes per row of the shard. The edges of a row are sorted by source, so that a stage continues
  /// where the previous one ended.
  EdgeRanges ranges(const Stage& stage) {
    const GraphShard& shard = stage.shard;
    if (stage.is_part()) return ranges_of_part(stage);
    const bool whole = stage.begin == 0 && stage.end == shard.num_src_rows;
    if (whole && shard.every_row) {
      const local_index* every = offsets_of_every_row(shard);
      return {shard.num_dst, nullptr, every, every + 1, every};
    }
    const local_index* offsets = shard.row_begin.data();
    if (whole)
      return {shard.num_rows(), shard.dst_rows.empty() ? nullptr : shard.dst_rows.data(), offsets,
              offsets + 1, offsets};
    if (stage.begin == 0) start(shard);
    const auto is_here = [&](Index i) { return source_[i] < stage.end; };
    constexpr Index block = 4096;
    std::vector<Index> first{0};  // first result row of each block of rows
    first.resize((shard.num_rows() + block - 1) / block + 1, 0);
    parallel_for(shard.num_rows(), block, [&](Index from, Index to) {
      Index count = 0;
      for (Index i = from; i < to; ++i) count += is_here(i) ? 1 : 0;
      first[from / block + 1] = count;
    });
    for (std::size_t b = 1; b < first.size(); ++b) first[b] += first[b - 1];
    for (Array<local_index>* list : {&rows_, &begin_, &end_, &before_}) {
      if (std::ssize(*list) >= first.back()) continue;
      *list = Array<local_index>();  // free the old buffer first
      list->resize(first.back());
    }
    parallel_for(shard.num_rows(), block, [&](Index from, Index to) {
      Index n = first[from / block];
      for (Index i = from; i < to; ++i) {
        if (!is_here(i)) continue;
        const local_index* edges = shard.src.data();
        const local_index last = offsets[i + 1];
        const local_index end = first_not_below(edges, next_[i], last, static_cast<local_index>(stage.end));
        rows_[n] = static_cast<local_index>(shard.dst_row(i));
        begin_[n] = std::exchange(next_[i], end);
        end_[n++] = end;
        source_[i] = end < last ? edges[end] : no_more;
      }
    });
    for (Index n = 0; n < first.back(); ++n)
      before_[n] = n == 0 ? 0 : before_[n - 1] + end_[n - 1] - begin_[n - 1];
    return {first.back(), rows_.data(), begin_.data(), end_.data(), before_.data()};
  }

 private:
  EdgeRanges ranges_of_part(const Stage& stage) {
    const GraphShard& shard = stage.shard;
    const local_index* offsets = offsets_of_every_row(shard);
    const Index first = stage.first_row;
    if (first > 0)
      return {stage.end_row - first, nullptr, offsets + first, offsets + first + 1, offsets + first, first};
    begin_.resize(shard.num_dst + 1);  // all rows; rows of other parts get no edges
    for (Index i = 0; i <= shard.num_dst; ++i) begin_[i] = std::min(offsets[i], offsets[stage.end_row]);
    return {shard.num_dst, nullptr, begin_.data(), begin_.data() + 1, begin_.data()};
  }
  /// Computed once and reused for all parts.
  const local_index* offsets_of_every_row(const GraphShard& shard) {
    if (std::exchange(every_row_of_, &shard) != &shard)
      every_row_ = shard.offsets_of_every_row(every_row_made_);
    return every_row_;
  }

  static constexpr local_index no_more = std::numeric_limits<local_index>::max();
  /// Returns the first of the edges [k, last) whose source is not below `bound`. Scans 16 edges before it
  /// switches to binary search, because a stage usually holds few edges of a row.
  static local_index first_not_below(const local_index* src, local_index k, local_index last,
                                     local_index bound) {
    const local_index near = last - k > 16 ? k + 16 : last;
    while (k < near && src[k] < bound) ++k;
    return k < near ? k : static_cast<local_index>(std::lower_bound(src + k, src + last, bound) - src);
  }
  void start(const GraphShard& shard) {
    const local_index* offsets = shard.row_begin.data();
    next_.assign(offsets, offsets + shard.num_rows());
    source_.resize(next_.size());
    parallel_for(shard.num_rows(), 4096, [&](Index from, Index to) {
      for (Index i = from; i < to; ++i)
        source_[i] = offsets[i] < offsets[i + 1] ? shard.src[offsets[i]] : no_more;
    });
  }

  Array<local_index> next_, source_;  // first unprocessed edge of each row, and its source
  Array<local_index> rows_, begin_, end_, before_;
  Array<local_index> every_row_made_;
  const GraphShard* every_row_of_ = nullptr;
  const local_index* every_row_ = nullptr;
};

/// One T for the local shard and one for the remote shard, whose stages alternate.
template <class T>
class OfEachShard {
 public:
  [[nodiscard]] T& at(const GraphShard& shard) {
    if (first_ == nullptr) first_ = &shard;
    return first_ == &shard ? of_first_ : of_second_;
  }

 private:
  const GraphShard* first_ = nullptr;
  T of_first_, of_second_;
};

}}  // namespace sar
