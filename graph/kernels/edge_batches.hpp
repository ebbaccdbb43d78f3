/// Batches of edges, of one row or several, with the rows at their other ends: how kernels go over edges that
/// do more with a gathered row than add it up. For implementation files.
#pragma once

#include <sar/core/workspace.hpp>
#include <sar/graph/kernels/columns.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <sar/core/isa_begin.hpp>

namespace edge_batches {

using columns::Rows;

inline constexpr Index real_bytes = static_cast<Index>(sizeof(real));
inline constexpr std::size_t batch_edges = 64;

/// Consecutive edges of one row within a batch.
struct Segment {
  Index row;       ///< number of the row
  Index position;  ///< of the first edge
  Index first;     ///< its number in the batch
  Index edges;
  bool begins;  ///< these are the first of the row's edges
};

/// Where the rows at the other end of the edges lie.
struct Gathered {
  const real* base = nullptr;
  Index width = 0;
};

/// Some edges of some rows, in order.
template <std::size_t Tables>
struct Batch {
  Index edges = 0;
  Index segments = 0;
  std::array<Segment, batch_edges> segment;
  std::array<Index, batch_edges> other;  ///< gathered row per edge
  std::array<std::array<const real*, batch_edges>, Tables> rows;
};

/// The gathered rows of a segment, from one of the tables: `heads` times `dim` columns from `first` on.
template <std::size_t Tables>
Rows rows_of(const Batch<Tables>& batch, const Batch<Tables>& next, const Segment& s, std::size_t table,
             Index first, Index heads, Index dim) {
  return {.at = batch.rows[table].data() + s.first,
          .next = next.rows[table].data() + s.first,
          .n = s.edges,
          .first = first,
          .heads = heads,
          .dim = dim};
}

/// run(batch, next) over the edges of rows [first, last), but for rows with more than `longest` edges. Behind
/// the last edge of `next`, rows are those of the first edge.
template <std::size_t Tables, class Run>
void for_batches(const local_index* begin, const local_index* end, Index first, Index last,
                 const local_index* col, Index col_offset, Index most,
                 const std::array<Gathered, Tables>& tables, const Run& run,
                 Index longest = std::numeric_limits<Index>::max()) {
  std::array<Batch<Tables>, 2> batches;
  Batch<Tables>* current = &batches[0];
  Batch<Tables>* next = &batches[1];
  Index row = first;
  Index k = row < last ? begin[row] : 0;
  const auto end_of = [&](Index i) { return end[i] - begin[i] <= longest ? end[i] : begin[i]; };
  const auto fill = [&](Batch<Tables>& batch) {
    batch.edges = batch.segments = 0;
    while (row < last && batch.edges < most) {
      const Index n = std::min(end_of(row) - k, most - batch.edges);
      if (n > 0) batch.segment[batch.segments++] = {row, k, batch.edges, n, k == begin[row]};
      for (Index i = 0; i < n; ++i) batch.other[batch.edges + i] = col[k + i] - col_offset;
      batch.edges += n;
      k += n;
      if (k == end_of(row) && ++row < last) k = begin[row];
    }
    for (std::size_t t = 0; t < Tables; ++t) {
      for (Index x = 0; x < batch.edges; ++x)
        batch.rows[t][x] = tables[t].base + batch.other[x] * tables[t].width;
      std::fill(batch.rows[t].begin() + batch.edges, batch.rows[t].end(), tables[t].base);
    }
  };
  for (fill(*current); current->edges > 0; std::swap(current, next)) {
    fill(*next);
    run(*current, *next);
  }
}

/// Edges of a batch whose gathered rows have `width` columns in all: few enough that these rows, those of the
/// next batch and what is kept per edge and head stay in the first-level cache.
inline Index edges_at_once(Index width, Index heads) {
  constexpr Index bytes = 1 << 14;
  return std::clamp<Index>(std::min(bytes / std::max<Index>(width * real_bytes, 1), 2048 / heads), 8,
                           static_cast<Index>(batch_edges));
}

/// What a loop body keeps of a batch: [edges, heads].
inline PassVector<real> per_edge(Index heads) {
  return PassVector<real>(batch_edges * heads);
}

}  // namespace edge_batches

#include <sar/core/isa_end.hpp>
