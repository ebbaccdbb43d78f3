// SPDX-License-Identifier: MIT

/// A buffer with a slot per edge, through which a pass over source rows hands values to a pass over
/// destination rows. For implementation files.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

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
