// SPDX-License-Identifier: MIT

/// Batches of edges with pointers to the gathered rows at their other ends, for kernels that do more with a
/// gathered row than add it. A batch has edges of one or several rows. For implementation files.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/graph/kernels/edge_walk.hpp>
#include <sar/graph/kernels/row_loops.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <sar/core/isa/isa_begin.hpp>

namespace edge_batches {

using lanes::Rows;
using lanes::RowsOf;

inline constexpr Index real_bytes = static_cast<Index>(sizeof(real));
inline constexpr std::size_t batch_edges = 64;

/// Consecutive edges of one row within a batch.
struct Segment {
  Index row;       ///< index of the row
  Index position;  ///< position of the first edge
  Index first;     ///< index of the first edge in the batch
  Index edges;
  bool begins;  ///< the segment contains the first edge of the row
};

/// A table of gathered rows.
template <class X>
struct GatheredOf {
  const X* base = nullptr;
  Index width = 0;
};
using Gathered = GatheredOf<real>;

/// A batch of consecutive edges.
template <std::size_t Tables, class X = real>
struct Batch {
  Index edges = 0;
  Index segments = 0;
  std::array<Segment, batch_edges> segment;
  std::array<Index, batch_edges> other;  ///< gathered row per edge
  std::array<std::array<const X*, batch_edges>, Tables> rows;

  // A loop over a batch visits its segments.
  [[nodiscard]] const Segment* begin() const { return segment.data(); }
  [[nodiscard]] const Segment* end() const { return segment.data() + segments; }
};

/// Returns the gathered rows of a segment from one of the tables: `heads` times `dim` columns starting at
/// `first`.
template <std::size_t Tables, class X>
RowsOf<X> rows_of(const Batch<Tables, X>& batch, const Batch<Tables, X>& next, const Segment& s,
                  std::size_t table, Index first, Index heads, Index dim) {
  return {.at = batch.rows[table].data() + s.first,
          .next = next.rows[table].data() + s.first,
          .n = s.edges,
          .first = first,
          .heads = heads,
          .dim = dim};
}

/// Calls run(batch, next) for batches of at most `most` edges over the rows [first, last). `next` is the
/// following batch, so that its rows can be prefetched; row pointers past its last edge point to the table's
/// base.
template <std::size_t Tables, class X = real, class Run>
void for_batches(const EdgeRows& rows, Index first, Index last, Index most,
                 const std::array<GatheredOf<X>, Tables>& tables, const Run& run) {
  std::array<Batch<Tables, X>, 2> batches;
  Batch<Tables, X>* current = &batches[0];
  Batch<Tables, X>* next = &batches[1];
  Index row = first;
  const local_index *const begin = rows.begin, *const col = rows.other;
  const Index offset = rows.offset;
  Index k = row < last ? begin[row] : 0;
  const auto end_of = [&](Index i) { return rows.size(i) <= rows.longest ? rows.end[i] : begin[i]; };
  const auto fill = [&](Batch<Tables, X>& batch) {
    batch.edges = batch.segments = 0;
    while (row < last && batch.edges < most) {
      const Index n = std::min(end_of(row) - k, most - batch.edges);
      if (n > 0) batch.segment[batch.segments++] = {row, k, batch.edges, n, k == begin[row]};
      for (Index i = 0; i < n; ++i) batch.other[batch.edges + i] = col[k + i] - offset;
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

/// Returns the batch size for gathered rows of `width` columns in total: the rows of this batch and the next
/// one and the values per edge and head fit in the L1 cache.
inline Index edges_at_once(Index width, Index heads) {
  constexpr Index bytes = 1 << 14;
  return std::clamp<Index>(std::min(bytes / std::max<Index>(width * real_bytes, 1), 2048 / heads), 8,
                           static_cast<Index>(batch_edges));
}

/// A buffer for one value per edge and head of a batch: [edges, heads].
inline PassVector<real> per_edge(Index heads) {
  return PassVector<real>(batch_edges * heads);
}

/// Sums rows of `width` numbers over their edges, in parts where a row has many: sum(rows, to, add) computes
/// the results of rows, or adds them, for those that are not long and then for the parts, whose sums are
/// added in double precision. `out` null: not required.
template <class Sum>
void sum_in_parts(const EdgeRows& rows, Index width, TypedNumbers out, bool add, const Sum& sum) {
  const EdgeParts split(rows);
  sum(split.whole_rows(), out, add);
  if (split.size() == 0) return;
  Array<real> parts(out.defined() ? split.size() * width : 0, real{0});
  sum(split.parts(), out.defined() ? TypedNumbers(parts.data()) : out, false);
  if (!out.defined()) return;
  with_type(out, [&](auto* numbers) {
    split.for_rows([&](Index row, Index first, Index last) {
      PassVector<double> sums(width, 0);
      for (Index part = first; part < last; ++part)
        for (Index j = 0; j < width; ++j) sums[j] += static_cast<double>(parts[part * width + j]);
      auto* const to = numbers + row * width;
      for (Index j = 0; j < width; ++j)
        lanes::set_number(to[j],
                          static_cast<real>((add ? static_cast<double>(lanes::number(to[j])) : 0) + sums[j]));
    });
  });
}

}  // namespace edge_batches

#include <sar/core/isa/isa_end.hpp>
