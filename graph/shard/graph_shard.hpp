/// GraphShard: some of a worker's in-edges in local memory, as a bipartite graph from source rows to
/// destination rows. Shard kernels (shard_kernel.hpp) run on it; it knows nothing of ranks.
///
/// Room graph/shard: Edges in local memory, and what a kernel on them must offer. Nothing here knows ranks or
/// tapes.
#pragma once

#include <sar/config.hpp>
#include <sar/core/index_set.hpp>
#include <sar/core/memory.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// A row index inside a shard.
using local_index = std::int32_t;

/// The same edges by source row, for the backward pass: those of row 0, then those of row 1, and so on.
/// SourceOffsets says where the edges of a row begin.
struct ShardTranspose {
  Array<local_index> dst;  ///< destination row (of the worker) per edge
};

struct GraphShard {
  Index num_src_rows =
      0;                 ///< rows that the kernels are given; every one has an edge, but for the local shard
  Index num_dst = 0;     ///< destination rows of the worker
  Index first_edge = 0;  ///< number of this shard's first edge among the worker's edges

  /// Whether kernels are given all destination rows, also those without edges (EdgeCursor): the local shard.
  bool every_row = false;
  /// Destination rows with edges, ascending; empty: no edges, or all rows 0 .. num_dst-1 (num_rows()).
  Array<local_index> dst_rows;
  /// Edges of dst_rows[i]: [row_begin[i], row_begin[i+1]), sorted by source row, then by edge id.
  Array<local_index> row_begin;
  Array<local_index> src;  ///< source row per edge

  [[nodiscard]] Index num_rows() const noexcept { return static_cast<Index>(row_begin.size()) - 1; }
  [[nodiscard]] Index num_edges() const noexcept { return static_cast<Index>(src.size()); }
  [[nodiscard]] Index dst_row(Index i) const { return dst_rows.empty() ? i : dst_rows[i]; }
  [[nodiscard]] Index edge(Index position) const { return first_edge + position; }

  /// The offsets of all destination rows [num_dst + 1]: row_begin, or made of it in `made`.
  [[nodiscard]] const local_index* offsets_of_every_row(Array<local_index>& made) const;

  /// Of all arrays that are there now.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// The edges by source row. Made at the first call and kept.
  [[nodiscard]] const ShardTranspose& transpose() const;
  /// For each edge of transpose(): its position among the edges of this shard. Made at the first call and
  /// kept.
  [[nodiscard]] const Array<local_index>& transpose_positions() const;
  /// For each edge of this shard: its position among the edges of transpose(). Made at the first call and
  /// kept.
  [[nodiscard]] const Array<local_index>& positions_in_transpose() const;

 private:
  friend class SourceOffsets;
  /// The offsets of the transpose where the source rows are many more than the edges, as bits.
  struct FewEdges {
    IndexSet rows;         ///< with edges
    IndexSet first_edges;  ///< of these rows, among the edges of the transpose
  };
  struct Lazy {
    std::once_flag transpose_once, positions_once, inverse_once;
    ShardTranspose transpose;
    Array<local_index> begin;      ///< [source rows + 1] offsets of the transpose; empty where bits say them
    std::optional<FewEdges> bits;  ///< the same in a bit a source row and a bit an edge
    Array<local_index> positions, inverse;
  };
  std::unique_ptr<Lazy> lazy_ = std::make_unique<Lazy>();
};

/// Where the edges of the source rows [first, last) begin among those of the transpose: row first + i has the
/// edges [data()[i], data()[i + 1]). Reads them, or makes them of the bits that a shard of few edges keeps,
/// which takes time for the rows and edges before `last`.
class SourceOffsets {
 public:
  SourceOffsets(const GraphShard& shard, Index first, Index last);
  [[nodiscard]] const local_index* data() const noexcept { return begin_; }
  [[nodiscard]] local_index operator[](Index i) const noexcept { return begin_[i]; }

 private:
  Array<local_index> made_;
  const local_index* begin_;
};

/// An in-edge before it has found its shard.
struct LocalEdge {
  local_index dst;  ///< destination row of the worker
  local_index src;  ///< source row of the shard; before that is known, row in the range of the source's owner
  Index id;
  real weight;
};

/// A shard of `edges`, which are sorted by (dst, src, id), numbered from `first_edge`; `every_row` as in
/// GraphShard. Throws InputError for more than 2^31-1 edges.
GraphShard build_shard(const LocalEdge* edges, Index num_edges, Index first_edge, Index num_dst,
                       Index num_src_rows, bool every_row);

/// Sets every_row, dst_rows and row_begin of a shard whose `num_edges` edges are sorted by their destination
/// row, dst_of(k). Only the rows with edges are listed, but with `every_row` and where that takes less memory
/// all of them.
template <class DstOf>
void list_rows(GraphShard& shard, Index num_edges, const DstOf& dst_of, bool every_row) {
  Index rows = 0;
  for (Index k = 0; k < num_edges; ++k) rows += k == 0 || dst_of(k) != dst_of(k - 1) ? 1 : 0;
  shard.every_row = every_row;
  if (!every_row || 2 * rows < shard.num_dst) {
    shard.dst_rows.reserve(rows);
    shard.row_begin.reserve(rows + 1);
    for (Index k = 0; k < num_edges; ++k) {
      if (k > 0 && dst_of(k) == dst_of(k - 1)) continue;
      shard.dst_rows.push_back(dst_of(k));
      shard.row_begin.push_back(static_cast<local_index>(k));
    }
    shard.row_begin.push_back(static_cast<local_index>(num_edges));
  } else {
    shard.row_begin.resize(shard.num_dst + 1);
    Index k = 0;
    for (Index i = 0; i < shard.num_dst; ++i) {
      shard.row_begin[i] = static_cast<local_index>(k);
      while (k < num_edges && dst_of(k) == i) ++k;
    }
    shard.row_begin[shard.num_dst] = static_cast<local_index>(num_edges);
  }
}

}  // namespace sar
