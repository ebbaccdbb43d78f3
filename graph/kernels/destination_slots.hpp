/// What a pass over source rows leaves for a pass over destination rows: some numbers per edge. For
/// implementation files.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <algorithm>

namespace sar::inline SAR_PRECISION {

/// A slot of `width` reals for each edge of a block of source rows, in the order of destinations.
class DestinationSlots {
 public:
  explicit DestinationSlots(Index width) : width_(width) {}

  [[nodiscard]] Index width() const { return width_; }

  /// For the edges of `ranges`, which stay as they are while slots are used; `num_dst`: destinations of the
  /// worker.
  void open(Index num_dst, const EdgeRanges& ranges) {
    whole_ = ranges.begin == ranges.before;
    if (!whole_) {
      shift_.resize(num_dst);
      for (Index i = 0; i < ranges.num_rows; ++i) shift_[ranges.row(i)] = ranges.before[i] - ranges.begin[i];
    }
    const Index last = ranges.num_rows - 1;
    const Index edges = last < 0 ? 0 : Index{ranges.before[last]} + ranges.end[last] - ranges.begin[last];
    if (std::ssize(slots_) >= edges * width_) return;
    slots_ = Array<real>();  // so that there are never two
    slots_.resize(edges * width_);
  }
  /// Of the edge at `position` of the shard, into destination v. Those of a row lie one after the other.
  [[nodiscard]] real* at(Index v, Index position) {
    return slots_.data() + (whole_ ? position : position + shift_[v]) * width_;
  }

 private:
  Index width_;
  bool whole_ = false;        ///< the ranges are those of a whole shard: slots lie where edges do
  Array<local_index> shift_;  ///< per destination: the number of a slot less the position of its edge
  Array<real> slots_;
};

/// visit(block) for blocks of the source rows of a stage with at most `most_edges` edges each, or one row.
template <class Visit>
void for_blocks_of_sources(const Stage& stage, Index width, Index most_edges, const Visit& visit) {
  const SourceOffsets offsets(stage.shard, stage.begin, stage.end);
  const auto begin = [&](Index row) { return offsets.data() + (row - stage.begin); };
  for (Index from = stage.begin; from < stage.end;) {
    const auto behind = std::upper_bound(begin(from + 1), begin(stage.end + 1), *begin(from) + most_edges);
    const Index to = std::max<Index>(stage.begin + (behind - offsets.data()) - 1, from + 1);
    visit(Stage{stage.shard, from, to, stage.rows + (from - stage.begin) * width});
    from = to;
  }
}

}  // namespace sar
