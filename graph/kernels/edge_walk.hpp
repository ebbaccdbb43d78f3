// SPDX-License-Identifier: MIT

/// The walk over the edges of a stage, in which all kernels visit edges:
///
///     EdgeWalk      lists the edges of a stage as EdgeRows: by destination, or by source
///     EdgeParts     the same rows, of which long ones come in parts that run in parallel
///     EdgesByType   the edges of some rows grouped by type, for kernels with a matrix per type
///     EdgeBlocks    chunks of edges written out as lists, for functions of the caller
///     EdgeSlots     numbers for each edge, written by source and read by destination
///
/// and for_batches() (edge_batches.hpp) visits them with pointers to gathered rows. All of them take
/// EdgeRows, which say the same in both directions.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Rows with their edges: destinations with in-edges, or sources with out-edges. Row i has the edges at the
/// positions [begin[i], end[i]) of the lists below.
struct EdgeRows {
  Index num_rows = 0;
  const local_index* begin = nullptr;
  const local_index* end = nullptr;
  const local_index* before = nullptr;  ///< number of edges in the rows before each row; null: begin
  const local_index* rows = nullptr;    ///< destination row of this rank, or source row of the stage; null:
  Index first_row = 0;                  ///< first_row + i
  const local_index* other = nullptr;   ///< row at the other end of each edge, plus `offset`
  Index offset = 0;
  const local_index* position_of = nullptr;           ///< position in the shard of each edge; null: the same
  Index first_edge = 0;                               ///< index of the edge at position 0 of the shard
  Index longest = std::numeric_limits<Index>::max();  ///< walks skip rows with more edges
  bool of_parts = false;                              ///< rows are parts of rows, each with its own result

  [[nodiscard]] Index row(Index i) const { return rows != nullptr ? rows[i] : first_row + i; }
  /// The row of the result of row i.
  [[nodiscard]] Index result(Index i) const { return of_parts ? i : row(i); }
  [[nodiscard]] Index size(Index i) const { return end[i] - begin[i]; }
  /// Index of the edge at position k among the edges of this rank.
  [[nodiscard]] Index edge(Index k) const {
    return first_edge + (position_of != nullptr ? position_of[k] : k);
  }
  [[nodiscard]] const local_index* offsets() const { return before != nullptr ? before : begin; }
  [[nodiscard]] Index num_edges() const {
    return num_rows > 0 ? offsets()[num_rows - 1] - offsets()[0] + size(num_rows - 1) : 0;
  }
  /// The rows [first, last).
  [[nodiscard]] EdgeRows slice(Index first, Index last) const {
    EdgeRows some = *this;
    some.num_rows = last - first;
    some.first_row += first;
    for (const local_index** list : {&some.begin, &some.end, &some.before, &some.rows})
      if (*list != nullptr) *list += first;
    return some;
  }
};

/// Calls body(first, last) in parallel for blocks of rows with about equal numbers of edges plus rows.
void for_row_blocks(const EdgeRows& rows, Index bytes_per_edge,
                    FunctionRef<void(Index first, Index last)> body);

/// The first edge of each row that no stage has had yet, and its source.
struct NextEdges {
  static constexpr local_index no_more = std::numeric_limits<local_index>::max();
  Array<local_index> position, source;

  void start(const GraphShard& shard) {
    const local_index* offsets = shard.row_begin.data();
    position.assign(offsets, offsets + shard.num_rows());
    source.resize(position.size());
    parallel_for(shard.num_rows(), 4096, [&](Index from, Index to) {
      for (Index i = from; i < to; ++i)
        source[i] = offsets[i] < offsets[i + 1] ? shard.src[offsets[i]] : no_more;
    });
  }
};

/// Lists the edges whose sources are in a stage. A shard is processed in stages of ascending source rows; the
/// local shard may also be processed in parts of its destination rows.
class EdgeWalk {
 public:
  /// Valid until the next call. For a whole shard, all its rows, which are all destinations if every_row is
  /// set. For a stage of some source rows, the rows with edges in it, found by a scan of 4 bytes per row of
  /// the shard. The edges of a row are sorted by source, so that a stage continues where the previous one
  /// ended.
  EdgeRows by_destination(const Stage& stage) {
    const GraphShard& shard = stage.shard;
    if (stage.is_part()) return rows_of_part(stage);
    const bool whole = stage.begin == 0 && stage.end == shard.num_src_rows;
    if (whole && shard.every_row) return rows_of(stage, shard.num_dst, offsets_of_every_row(shard));
    const local_index* offsets = shard.row_begin.data();
    if (whole)
      return rows_of(stage, shard.num_rows(), offsets,
                     shard.dst_rows.empty() ? nullptr : shard.dst_rows.data());
    if (stage.begin == 0) next_.start(shard);
    const auto is_here = [&](Index i) { return next_.source[i] < stage.end; };
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
    std::vector<Index> edges_before(first.size());  // edges in the stage before each block of rows
    parallel_for(shard.num_rows(), block, [&](Index from, Index to) {
      Index n = first[from / block];
      local_index before = 0;
      for (Index i = from; i < to; ++i) {
        if (!is_here(i)) continue;
        const local_index* edges = shard.src.data();
        const local_index last = offsets[i + 1];
        const local_index end =
            first_not_below(edges, next_.position[i], last, static_cast<local_index>(stage.end));
        rows_[n] = static_cast<local_index>(shard.dst_row(i));
        before_[n] = before;
        before += end - next_.position[i];
        begin_[n] = std::exchange(next_.position[i], end);
        end_[n++] = end;
        next_.source[i] = end < last ? edges[end] : NextEdges::no_more;
      }
      edges_before[from / block + 1] = before;
    });
    for (std::size_t b = 1; b < edges_before.size(); ++b) edges_before[b] += edges_before[b - 1];
    parallel_for(shard.num_rows(), block, [&](Index from, Index) {
      const Index b = from / block;
      for (Index n = first[b]; n < first[b + 1]; ++n) before_[n] += static_cast<local_index>(edges_before[b]);
    });
    EdgeRows found = rows_of(stage, first.back(), begin_.data(), rows_.data());
    found.end = end_.data();
    found.before = before_.data();
    return found;
  }

  /// Valid until the next call. All source rows of the stage; stages may come in any order. `numbered`:
  /// whether edge() is asked for, for which the shard keeps 4 bytes per edge.
  EdgeRows by_source(const Stage& stage, bool numbered = true) {
    const GraphShard& shard = stage.shard;
    const local_index* offsets = sources_.emplace(shard, stage.begin, stage.end).data();
    return {.num_rows = stage.size(),
            .begin = offsets,
            .end = offsets + 1,
            .other = shard.transpose().dst.data(),
            .position_of = numbered ? shard.transpose_positions().data() : nullptr,
            .first_edge = shard.first_edge};
  }

 private:
  static EdgeRows rows_of(const Stage& stage, Index num_rows, const local_index* offsets,
                          const local_index* rows = nullptr) {
    return {.num_rows = num_rows,
            .begin = offsets,
            .end = offsets + 1,
            .rows = rows,
            .other = stage.shard.src.data(),
            .offset = stage.begin,
            .first_edge = stage.shard.first_edge};
  }
  EdgeRows rows_of_part(const Stage& stage) {
    const GraphShard& shard = stage.shard;
    const local_index* offsets = offsets_of_every_row(shard);
    if (stage.first_row > 0)
      return rows_of(stage, shard.num_dst, offsets).slice(stage.first_row, stage.end_row);
    begin_.resize(shard.num_dst + 1);  // all rows; rows of other parts get no edges
    parallel_for_each(shard.num_dst + 1, 1 << 14,
                      [&](Index i) { begin_[i] = std::min(offsets[i], offsets[stage.end_row]); });
    return rows_of(stage, shard.num_dst, begin_.data());
  }
  /// Computed once and reused for all parts.
  const local_index* offsets_of_every_row(const GraphShard& shard) {
    if (std::exchange(every_row_of_, &shard) != &shard)
      every_row_ = shard.offsets_of_every_row(every_row_made_);
    return every_row_;
  }
  /// Returns the first of the edges [k, last) whose source is not below `bound`. Scans 16 edges before it
  /// switches to binary search, because a stage usually holds few edges of a row.
  static local_index first_not_below(const local_index* src, local_index k, local_index last,
                                     local_index bound) {
    const local_index near = last - k > 16 ? k + 16 : last;
    while (k < near && src[k] < bound) ++k;
    return k < near ? k : static_cast<local_index>(std::lower_bound(src + k, src + last, bound) - src);
  }

  NextEdges next_;
  Array<local_index> rows_, begin_, end_, before_;
  Array<local_index> every_row_made_;
  const GraphShard* every_row_of_ = nullptr;
  const local_index* every_row_ = nullptr;
  std::optional<SourceOffsets> sources_;
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

/// Splits rows with many edges into parts that run in parallel.
class EdgeParts {
 public:
  /// A part sums its terms in `real`, the parts of a row are added in double precision. Kernels that keep
  /// doubles themselves split only for the sake of threads, and pass a larger number.
  static constexpr Index part_edges = 1024;

  /// Rows with more than `longest` edges become parts of `of_part` edges.
  explicit EdgeParts(const EdgeRows& rows, Index longest = part_edges, Index of_part = part_edges);

  [[nodiscard]] Index size() const { return std::ssize(begin_); }
  /// The rows that are not long.
  [[nodiscard]] const EdgeRows& whole_rows() const { return rows_; }
  /// The parts; their numbers are those of the rows they belong to.
  [[nodiscard]] EdgeRows parts() const {
    EdgeRows parts = rows_;
    parts.num_rows = size();
    parts.begin = begin_.data();
    parts.end = end_.data();
    parts.before = before_.data();
    parts.rows = row_of_.data();
    parts.longest = std::numeric_limits<Index>::max();
    parts.of_parts = true;
    return parts;
  }
  /// Calls merge(number of the row, first, last) for each long row with its parts [first, last). Rows run in
  /// parallel.
  template <class Merge>
  void for_rows(const Merge& merge) const {
    parallel_for(std::ssize(first_part_) - 1, 1, [&](Index from, Index to) {
      for (Index n = from; n < to; ++n)
        merge(Index{row_of_[first_part_[n]]}, first_part_[n], first_part_[n + 1]);
    });
  }

 private:
  EdgeRows rows_;
  PassVector<Index> first_part_;                           // of each long row
  PassVector<local_index> row_of_, begin_, end_, before_;  // one entry per part
};

/// A slot of `width` reals for each edge of a block of source rows, ordered by destination.
class EdgeSlots {
 public:
  explicit EdgeSlots(Index width) : width_(width) {}

  [[nodiscard]] Index width() const { return width_; }

  /// Assigns slots to the edges of rows of destinations, which must stay unchanged while slots are used.
  /// `num_dst`: number of destinations of this rank.
  void open(Index num_dst, const EdgeRows& rows) {
    whole_ = rows.before == nullptr;
    if (!whole_) {
      shift_.resize(num_dst);
      parallel_for_each(rows.num_rows, 1 << 14,
                        [&](Index i) { shift_[rows.row(i)] = rows.before[i] - rows.begin[i]; });
    }
    const Index last = rows.num_rows - 1, edges = last < 0 ? 0 : rows.offsets()[last] + rows.size(last);
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
  bool whole_ = false;        ///< the rows cover the whole shard: slots have the positions of edges
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

/// Groups the edges of a block of rows by type and, within a type, by row. A pair is a row and the type of
/// one or more of its edges. A kernel processes some pairs of a type at a time: it sums, or attends over, the
/// edges of each pair into one row per pair, and multiplies these rows by the type's matrix while they are in
/// the cache.
///
///     EdgesByType block(types, num_types);
///     block.group(rows, first, last);
///     for (const EdgesByType::Group& group : block.groups())
///       for (Index p = group.first; p < group.last; ++p)           // pair (block.pairs().row(p), group.type)
///         for (Index k = block.pairs().begin[p]; k < block.pairs().end[p]; ++k)
///           use(block.pairs().other[k], block.pairs().edge(k));
///
/// Cost: the indices of a block are read twice and written once, about 20 bytes per edge, in the cache for
/// blocks of a few thousand edges. The order is that of the rows and depends neither on threads nor on
/// addresses. Used by one thread; the memory is reused from block to block.
class EdgesByType {
 public:
  struct Group {
    Index type;
    Index first, last;  ///< its pairs
  };

  /// `types`: per edge index.
  EdgesByType(const std::uint16_t* types, Index num_types) : types_(types), edges_of_type_(num_types, 0) {}

  /// Groups the edges of the rows [first, last).
  void group(const EdgeRows& rows, Index first, Index last);

  /// Returns the groups, one per type that occurs, in ascending order.
  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }
  /// The pairs as rows: row(p) is in [first, last), and ascends within a type.
  [[nodiscard]] const EdgeRows& pairs() const { return pairs_; }
  /// Calls visit(type, first, last) for the pairs, at most `most` at a time.
  template <class Visit>
  void for_pairs(Index most, const Visit& visit) const {
    for (const Group& group : groups_)
      for (Index p = group.first; p < group.last; p += most)
        visit(group.type, p, std::min(group.last, p + most));
  }

 private:
  void list_pairs();

  const std::uint16_t* types_;
  std::vector<local_index> edges_of_type_;  // next free position of each type; all 0 between two blocks
  std::vector<std::uint16_t> found_;        // types that occur
  std::vector<std::uint16_t> type_;         // of each edge of the rows
  std::vector<Group> groups_;
  std::vector<local_index> rows_, begin_;  // one entry per pair
  std::vector<local_index> row_, other_, edge_;
  EdgeRows pairs_;
};

/// Splits rows into blocks and returns the first row of each block, followed by their number. A block has
/// about `most` edges plus rows. Blocks are larger if there are many types, so that a type has several pairs,
/// and smaller if there are few edges.
std::vector<Index> typed_blocks(const EdgeRows& rows, Index num_types, Index most = Index{1} << 13);

/// Calls body(first, last) for these blocks, in parallel.
void for_typed_blocks(const EdgeRows& rows, Index num_types, FunctionRef<void(Index first, Index last)> body);

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
  /// The groups as rows, whose other ends are positions.
  [[nodiscard]] EdgeRows edge_rows() const {
    return {.num_rows = size(),
            .begin = begin.data(),
            .end = begin.data() + 1,
            .rows = rows.data(),
            .other = order.empty() ? nullptr : order.data()};
  }
};

/// Splits the edges of a stage into chunks of a given maximum size.
class EdgeBlocks {
 public:
  /// Whether edges of one row may be in several chunks. If not, a chunk has more than the maximum where one
  /// row has more.
  enum class Rows { split, whole };
  explicit EdgeBlocks(Index max_size, Rows rows = Rows::split)
      : max_size_(std::min<Index>(max_size, std::numeric_limits<local_index>::max())), of_rows_(rows) {}
  /// Order the stage's edges by destination, then source, then id, or by source. As in EdgeWalk.
  void by_destination(const Stage& stage) {
    by_source_ = false;
    divide(stage.begin == stage.end ? EdgeRows{} : walk_.by_destination(stage));
  }
  void by_source(const Stage& stage) {
    by_source_ = true;
    divide(walk_.by_source(stage));
  }

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
  /// Writes the chunks to `edges` and `groups` of a Chunk each, and calls compute(chunk), several at a time
  /// in parallel, and then add(chunk) in their order.
  template <class Chunk, class Compute, class Add>
  void for_each_chunk(PassVector<Chunk>& chunks, const Compute& compute, const Add& add) const {
    for_each(
        chunks, num_threads() == 1 ? 1 : 2 * num_threads(),
        [&](Chunk& chunk, Index b) {
          write(b, chunk.edges, chunk.groups);
          compute(chunk);
        },
        [&](std::span<const Chunk> some) {
          for (const Chunk& chunk : some) add(chunk);
          return true;
        });
  }

 private:
  void divide(const EdgeRows& rows);
  /// The first edge of chunk b, counted from that of the stage; that of the chunk after the last: their
  /// number.
  [[nodiscard]] Index first_edge(Index b) const {
    return of_rows_ == Rows::whole ? first_[b] : std::min(b * max_size_, num_edges_);
  }

  Index max_size_;
  Rows of_rows_;
  Array<Index> first_{0};  // of whole rows: first_edge() of each chunk
  EdgeWalk walk_;
  bool by_source_ = false;
  EdgeRows rows_{};
  Index num_edges_ = 0;
};

}}  // namespace sar
