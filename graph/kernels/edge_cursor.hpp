/// Where the edges of a piece lie: a shard may come in several pieces of its source rows, in ascending order.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/sequential.hpp>

#include <algorithm>

namespace sar {

/// The edges of the shard's i-th row whose sources lie in the piece: [begin[i], end[i]).
struct EdgeRanges {
  const local_index* begin;
  const local_index* end;
};

class EdgeCursor {
 public:
  /// Valid until the next call. Edges of a row are sorted by source: a piece goes on where the one before
  /// ended.
  EdgeRanges ranges(const SourcePiece& piece) {
    const GraphShard& shard = piece.shard;
    const local_index* offsets = shard.row_begin.data();
    if (piece.begin == 0 && piece.end == shard.num_src_rows) return {offsets, offsets + 1};
    const auto rows = static_cast<std::size_t>(shard.num_rows());
    if (piece.begin == 0)
      begin_.assign(offsets, offsets + rows);
    else
      begin_.swap(end_);
    end_.resize(rows);
    parallel_for(shard.num_rows(), 4096, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        const local_index* from = shard.src.data() + begin_[static_cast<std::size_t>(i)];
        const local_index* to = shard.src.data() + offsets[i + 1];
        end_[static_cast<std::size_t>(i)] = static_cast<local_index>(
            std::lower_bound(from, to, static_cast<local_index>(piece.end)) - shard.src.data());
      }
    });
    return {begin_.data(), end_.data()};
  }

 private:
  Array<local_index> begin_, end_;
};

}  // namespace sar
