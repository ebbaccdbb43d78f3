// SPDX-License-Identifier: MIT

/// The edges of a stage: which they are, the parts of rows with many edges, and a slot of numbers per edge. A
/// shard is processed in several stages of ascending source rows; the local shard may also be processed in
/// parts of its destination rows.
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

/// Splits rows with many edges into parts that run in parallel. A part sums its terms in `real`; the parts of
/// a row are added in double precision.
class LongRows {
 public:
  static constexpr Index part_edges = 1024;  ///< a row with more edges is long

  /// Finds the long rows among `rows` rows with the edges [begin[i], end[i]).
  LongRows(const local_index* begin, const local_index* end, Index rows) {
    for (Index i = 0; i < rows; ++i) {
      if (end[i] - begin[i] <= part_edges) continue;
      rows_.push_back(i);
      first_part_.push_back(std::ssize(begin_));
      for (Index k = begin[i]; k < end[i]; k += part_edges) {
        before_.push_back(before_.empty() ? 0 : before_.back() + (end_.back() - begin_.back()));
        row_of_.push_back(static_cast<local_index>(i));
        begin_.push_back(static_cast<local_index>(k));
        end_.push_back(static_cast<local_index>(std::min<Index>(end[i], k + part_edges)));
      }
    }
    first_part_.push_back(std::ssize(begin_));
  }

  [[nodiscard]] Index parts() const { return std::ssize(begin_); }
  /// Returns the parts as ranges of edges; `rows` are the row numbers.
  [[nodiscard]] EdgeRanges ranges() const {
    return {parts(), row_of_.data(), begin_.data(), end_.data(), before_.data()};
  }
  /// Returns the parts of rows of `edges`; writes the destination of each part to `destinations`.
  [[nodiscard]] EdgeRanges ranges(const EdgeRanges& edges, PassVector<local_index>& destinations) const {
    destinations.resize(row_of_.size());
    for (Index i = 0; i < parts(); ++i) destinations[i] = static_cast<local_index>(edges.row(row_of_[i]));
    return {parts(), destinations.data(), begin_.data(), end_.data(), before_.data()};
  }
  /// Calls merge(row, first, last) for each long row with its parts [first, last). Rows run in parallel.
  template <class Merge>
  void for_rows(const Merge& merge) const {
    parallel_for(std::ssize(rows_), 1, [&](Index from, Index to) {
      for (Index n = from; n < to; ++n) merge(rows_[n], first_part_[n], first_part_[n + 1]);
    });
  }

 private:
  PassVector<Index> rows_, first_part_;
  PassVector<local_index> row_of_, begin_, end_, before_;  // one entry per part
};

/// Computes to = (add ? to : 0) + the sum of the rows [first, last) of parts, in double precision.
inline void sum_parts(const real* parts, Index first, Index last, Index width, bool add, real* to) {
  PassVector<double> sums(width, 0);
  for (Index part = first; part < last; ++part)
    for (Index j = 0; j < width; ++j) sums[j] += static_cast<double>(parts[part * width + j]);
  for (Index j = 0; j < width; ++j)
    to[j] = static_cast<real>((add ? static_cast<double>(to[j]) : 0) + sums[j]);
}

/// A slot of `width` reals for each edge of a block of source rows, ordered by destination.
class DestinationSlots {
 public:
  explicit DestinationSlots(Index width) : width_(width) {}

  [[nodiscard]] Index width() const { return width_; }

  /// Assigns slots to the edges of `ranges`, which must stay unchanged while slots are used. `num_dst`:
  /// number of destinations of this rank.
  void open(Index num_dst, const EdgeRanges& ranges) {
    whole_ = ranges.begin == ranges.before;
    if (!whole_) {
      shift_.resize(num_dst);
      for (Index i = 0; i < ranges.num_rows; ++i) shift_[ranges.row(i)] = ranges.before[i] - ranges.begin[i];
    }
    const Index last = ranges.num_rows - 1;
    const Index edges = last < 0 ? 0 : Index{ranges.before[last]} + ranges.end[last] - ranges.begin[last];
    if (std::ssize(slots_) >= edges * width_) return;
    slots_ = Array<real>();  // free the old buffer first
    slots_.resize(edges * width_);
  }
  /// Returns the slot of the edge at `position` of the shard into destination v. The slots of a row are
  /// adjacent.
  [[nodiscard]] real* at(Index v, Index position) {
    return slots_.data() + (whole_ ? position : position + shift_[v]) * width_;
  }

 private:
  Index width_;
  bool whole_ = false;        ///< the ranges cover the whole shard: slots have the positions of edges
  Array<local_index> shift_;  ///< per destination: index of a slot minus the position of its edge
  Array<real> slots_;
};

/// Calls visit(block) for blocks of the source rows of a stage. A block has at most `most_edges` edges, or
/// one row.
template <class Visit>
void for_blocks_of_sources(const Stage& stage, Index width, Index most_edges, const Visit& visit) {
  const SourceOffsets offsets(stage.shard, stage.begin, stage.end);
  const auto begin = [&](Index row) { return offsets.data() + (row - stage.begin); };
  for (Index from = stage.begin; from < stage.end;) {
    const auto behind = std::upper_bound(begin(from + 1), begin(stage.end + 1), *begin(from) + most_edges);
    const Index to = std::max<Index>(stage.begin + (behind - offsets.data()) - 1, from + 1);
    visit(stage.of_sources(from, to, width));
    from = to;
  }
}
}}  // namespace sar
