// SPDX-License-Identifier: MIT

// Loop order: blocks of output rows in parallel, output rows in a block, tiles of columns of a row, edges of
// the row. The two sums of a tile (64 columns with AVX-512, 16 otherwise) stay in registers over all edges.
// The loop over the first tile prefetches whole rows, so that the other tiles hit the cache. Rows with 65,536
// edges or more are processed after all others, split into parts that run in parallel: exact sums can be
// added in any order.
//
// This file is compiled without fused multiply-adds: the error of an addition is computed from its terms.
#include <sar/core/memory/memory.hpp>
#include <sar/core/simd/prefetch.hpp>
#include <sar/graph/kernels/exact_gather_sum.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index lanes_of_double = SAR_VECTOR_BYTES / 8;
typedef double Doubles __attribute__((vector_size(lanes_of_double * 8)));         // NOLINT: of constant size
typedef real Reals __attribute__((vector_size(lanes_of_double * sizeof(real))));  // NOLINT
constexpr Index most_vectors = SAR_VECTOR_BYTES == 64 ? 8 : 4;  // in a tile; two registers each
constexpr Index hub_edges = 1 << 16;                            // a row with this many edges is split
constexpr Index part_edges = 1 << 14;                           // edges of a part of such a row

/// `vectors` of high and low sums.
template <Index vectors>
struct TileSums {
  Doubles high[vectors] = {};
  Doubles low[vectors] = {};

  [[gnu::always_inline]] void add(Index i, const Doubles& x) {
    const Doubles sum = high[i] + x;
    const Doubles part = sum - high[i];
    low[i] += (high[i] - (sum - part)) + (x - part);
    high[i] = sum;
  }
  void load_from(const double* of_high, const double* of_low) {
    std::memcpy(high, of_high, sizeof high);
    std::memcpy(low, of_low, sizeof low);
  }
  void store_to(double* of_high, double* of_low, Index count) const {
    if (count == vectors * lanes_of_double) {
      std::memcpy(of_high, high, sizeof high);
      std::memcpy(of_low, low, sizeof low);
    } else {
      std::memcpy(of_high, high, static_cast<std::size_t>(count) * sizeof(double));
      std::memcpy(of_low, low, static_cast<std::size_t>(count) * sizeof(double));
    }
  }
};

/// Loads `count` numbers, at most the lanes of a vector of doubles; the others are 0.
[[gnu::always_inline]] inline Doubles load(const real* from, Index count) {
  Reals v = {};
  if (count >= lanes_of_double)
    std::memcpy(&v, from, sizeof v);
  else
    std::memcpy(&v, from, static_cast<std::size_t>(count) * sizeof(real));
#if SAR_VECTOR_BYTES == 64 && !SAR_DOUBLE
  return (Doubles)_mm512_maskz_cvtps_pd(0xff, (__m256)v);  // GCC 12 converts half vectors
#else
  return __builtin_convertvector(v, Doubles);
#endif
}

/// The coefficient of sums without factors.
struct One {
  friend const Doubles& operator*(One, const Doubles& x) { return x; }
};

/// The sums of one output row, [width] and the rest of the last vector.
struct RowSums {
  explicit RowSums(Index width) : high(width + most_vectors * lanes_of_double), low(std::ssize(high)) {}
  Array<double> high, low;
};

/// Computes one output row.
struct ExactRow {
  const GatherSum& t;
  Index heads;
  ExactSum* sums;
  Index all_edges = t.end[t.num_rows - 1];
  Index row_bytes = t.width * static_cast<Index>(sizeof(real));
  Index ahead = 4 * rows_ahead(row_bytes);  // a tile reads a few lines of a row
  bool has_factors = t.weight != nullptr || t.col_scale != nullptr || t.row_scale != nullptr;

  static constexpr Index edges_at_once = 64;
  struct Edges {
    Index count;
    const real* row[edges_at_once];
    const real* next[edges_at_once];  ///< the row to prefetch while row k is added
    double factor[edges_at_once];
  };

  [[nodiscard]] Index edge(Index k) const {
    return t.first_edge + (t.position_of != nullptr ? t.position_of[k] : k);
  }
  [[nodiscard]] const real* row(Index k) const {
    if (t.col == nullptr) return t.x + edge(k) * t.width;
    const Index at = t.col[k] - t.col_offset;
    return t.x + (t.x_row != nullptr ? t.x_row[at] : at) * t.width;
  }
  /// The same, or any other row of this stage if there is no such edge.
  [[nodiscard]] const real* row_ahead(Index k) const {
    if (k >= all_edges) return t.x;
    if (t.col != nullptr) {
      const Index at = t.col[k] - t.col_offset;
      if (at < 0 || at >= t.x_rows) return t.x;
    }
    return row(k);
  }
  [[nodiscard]] real coefficient(Index k, Index head, Index out_row) const {
    real c = t.weight != nullptr ? t.weight[edge(k) * heads + head] : 1;
    if (t.col_scale != nullptr) c *= t.col_scale[t.col[k]];
    if (t.row_scale != nullptr) c *= t.row_scale[out_row];
    return c;
  }

  template <Index vectors>
  [[gnu::noinline]] void tile(const Edges& edges, Index j, Index count, bool begins, RowSums& to) const {
    TileSums<vectors> sum;
    if (!begins) sum.load_from(to.high.data() + j, to.low.data() + j);
    const Index last = (vectors - 1) * lanes_of_double, rest = count - last;
    const auto add_edges = [&](auto factor) {
      for (Index k = 0; k < edges.count; ++k) {
        const real* x = edges.row[k] + j;
        prefetch_bytes(edges.next[k] + j, vectors * lanes_of_double * static_cast<Index>(sizeof(real)));
        const auto c = factor(k);
        for (Index i = 0; i + 1 < vectors; ++i)
          sum.add(i, c * load(x + i * lanes_of_double, lanes_of_double));
        sum.add(vectors - 1, c * load(x + last, rest));
      }
    };
    if (has_factors)
      add_edges([&](Index k) { return edges.factor[k]; });
    else
      add_edges([](Index) { return One(); });
    sum.store_to(to.high.data() + j, to.low.data() + j, count);
  }
  /// The widest tile at column j of `left` columns; returns its columns.
  template <Index vectors = most_vectors>
  Index widest_tile(const Edges& edges, Index j, Index left, bool begins, RowSums& to) const {
    if constexpr (vectors > 1)
      if (left < vectors * lanes_of_double) return widest_tile<vectors / 2>(edges, j, left, begins, to);
    const Index count = std::min(left, vectors * lanes_of_double);
    tile<vectors>(edges, j, count, begins, to);
    return count;
  }
  /// to = the sums over the edges [first, last)
  void operator()(Index first, Index last, Index out_row, RowSums& to) const {
    const Index head_width = t.width / heads;
    Edges edges;
    for (Index from = first; from == first || from < last; from += edges_at_once) {
      edges.count = std::min(last - from, edges_at_once);
      for (Index k = 0; k < edges.count; ++k) {
        edges.row[k] = row(from + k);
        edges.next[k] = row_ahead(from + k + ahead);
      }
      for (Index head = 0; head < heads; ++head) {
        for (Index k = 0; has_factors && k < edges.count; ++k)
          edges.factor[k] = static_cast<double>(coefficient(from + k, head, out_row));
        const Index end = (head + 1) * head_width;
        for (Index j = end - head_width; j < end;) j += widest_tile(edges, j, end - j, from == first, to);
      }
    }
  }

  void write(const RowSums& of_row, Index out_row) const {
    if (sums != nullptr) {
      ExactSum* to = sums + out_row * t.width;
      for (Index j = 0; j < t.width; ++j) to[j].add(ExactSum{of_row.high[j], of_row.low[j]});
      return;
    }
    real* to = t.out + out_row * t.width;
    for (Index j = 0; j < t.width; ++j) {
      const double sum = ExactSum{of_row.high[j], of_row.low[j]}.value();
      to[j] = static_cast<real>((t.accumulate ? static_cast<double>(to[j]) : 0) + sum);
    }
  }
};

}  // namespace

void exact_gather_sum(const GatherSum& t, Index heads, ExactSum* sums) {
  if (t.num_rows <= 0 || t.width == 0) return;
  const ExactRow row_sum{t, heads, sums};
  const bool keeps = sums != nullptr || t.accumulate;  // rows without edges are as before
  const auto out_row = [&](Index i) { return t.rows != nullptr ? Index{t.rows[i]} : i; };
  std::vector<Index> hubs;
  std::mutex hubs_mutex;
  for_row_blocks(t.before != nullptr ? t.before : t.begin, t.num_rows,
                 t.width * static_cast<Index>(sizeof(real)), [&](Index first, Index last) {
                   RowSums of_row(t.width);
                   for (Index i = first; i < last; ++i) {
                     if (t.begin[i] == t.end[i] && keeps) continue;
                     if (t.end[i] - t.begin[i] >= hub_edges) {
                       const std::lock_guard lock(hubs_mutex);
                       hubs.push_back(i);
                       continue;
                     }
                     row_sum(t.begin[i], t.end[i], out_row(i), of_row);
                     row_sum.write(of_row, out_row(i));
                   }
                 });
  for (const Index i : hubs) {
    const Index parts = (t.end[i] - t.begin[i] + part_edges - 1) / part_edges;
    std::vector<RowSums> of_parts(static_cast<std::size_t>(parts), RowSums(t.width));
    parallel_for(parts, 1, [&](Index part, Index) {
      const Index first = t.begin[i] + part * part_edges;
      row_sum(first, std::min<Index>(t.end[i], first + part_edges), out_row(i), of_parts[part]);
    });
    RowSums& all = of_parts.front();
    for (Index part = 1; part < parts; ++part)
      for (Index j = 0; j < t.width; ++j) {
        ExactSum sum{all.high[j], all.low[j]};
        sum.add(ExactSum{of_parts[part].high[j], of_parts[part].low[j]});
        all.high[j] = sum.high;
        all.low[j] = sum.low;
      }
    row_sum.write(all, out_row(i));
  }
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, exact_gather_sum, (const GatherSum& task, Index heads, ExactSum* sums),
             (task, heads, sums));
