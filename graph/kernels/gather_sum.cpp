// SPDX-License-Identifier: MIT

/// Sums of gathered rows; the head of gather_sum.hpp has the formula.
///
/// Loop order: blocks of output rows in parallel, output rows in a block, tiles of columns of a row, edges of
/// the row. The sum of a tile stays in registers over all edges: up to 16 vectors with AVX-512, 8 otherwise;
/// of exact sums half as many, of doubles, in two registers each. The loop over the first tile prefetches
/// whole rows, about 8 KiB of them ahead, so that the other tiles hit the cache. Each gathered row is read
/// once from memory, and each output row is written once.
///
/// A width that is not a multiple of the vector length ends with a vector that overlaps the one before it;
/// rows narrower than one vector use scalar code, or, for exact sums, a part of a vector. Rounded sums of
/// more than 1,024 edges flush their registers to double precision totals every 1,024 edges. Rows with 65,536
/// edges or more are processed after all others, split into parts that run in parallel.
#include <sar/core/memory/memory.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <sar/core/isa/isa_begin.hpp>

namespace {

using lanes::load;
using lanes::number;
using lanes::set_number;
using lanes::store;
using lanes::Vector;
using lanes::vector_bytes;
using lanes::vector_lanes;

constexpr Index block_edges = 1024;            // terms summed in `real`; blocks of them in double precision
constexpr Index hub_edges = 1 << 16;           // a row with this many edges is split
constexpr Index part_edges = 1 << 14;          // edges of a part of such a row
constexpr Index max_vectors = vector_bytes == 64 ? 16 : 8;  // accumulators that fit the registers

enum class Terms { rows, weighted_rows, rows_of_edges };

/// The rows of edges and their factors.
template <Terms terms, class X>
struct EdgeRowsOf {
  const GatherSum& t;
  const X* x;
  Index all_edges = t.edges.end[t.edges.num_rows - 1];
  Index row_bytes = t.width * static_cast<Index>(sizeof(X));
  Index ahead = rows_ahead(row_bytes);

  [[nodiscard]] const X* row(Index k) const {
    if constexpr (terms == Terms::rows_of_edges) return x + t.edges.edge(k) * t.width;
    const Index at = t.edges.other[k] - t.edges.offset;
    return x + (t.x_row != nullptr ? t.x_row[at] : at) * t.width;
  }
  [[nodiscard]] real coefficient(Index k, Index head = 0) const {
    real c = 1;
    if (t.weight != nullptr) c = t.weight[t.edges.edge(k) * t.heads + head];
    if (t.col_scale != nullptr) c *= t.col_scale[t.edges.other[k]];
    return c;
  }
  [[nodiscard]] real scale_of(Index out_row) const {
    return t.row_scale != nullptr ? t.row_scale[out_row] : 1;
  }
  /// Prefetches the row of edge k. Edges past the end of a row may belong to another stage. Inlined, because
  /// a call would save the sums, which are in registers, in memory.
  [[gnu::always_inline]] inline void prefetch(Index k) const {
    if (k >= all_edges) return;
    if constexpr (terms != Terms::rows_of_edges) {
      const Index at = t.edges.other[k] - t.edges.offset;
      if (at < 0 || at >= t.x_rows) return;
    }
    prefetch_bytes(row(k), row_bytes);
  }
};

/// Calls visit(std::integral_constant<Index, N>, j, count) for tiles of `count` columns in N vectors of
/// `lanes` numbers, which cover the columns [j, end); N = 0 for fewer columns than a vector has. No tile
/// leaves less than a vector to the next one.
template <Index lanes, Index most, class Visit>
void for_tiles(Index j, Index end, const Visit& visit) {
  while (j < end) {
    const Index left = end - j;
    const auto whole = [left](Index n) { return left == n * lanes || left >= (n + 1) * lanes; };
    const auto take = [&]<Index n>(std::integral_constant<Index, n> vectors, Index count) {
      visit(vectors, j, count);
      j += count;
    };
    if (whole(most))
      take(std::integral_constant<Index, most>(), most * lanes);
    else if (most > 8 && whole(8))
      take(std::integral_constant<Index, std::min<Index>(most, 8)>(), 8 * lanes);
    else if (whole(4))
      take(std::integral_constant<Index, 4>(), 4 * lanes);
    else if (left > 4 * lanes)
      take(std::integral_constant<Index, 2>(), 2 * lanes);
    else if (left > 3 * lanes)
      take(std::integral_constant<Index, 4>(), left);
    else if (left > 2 * lanes)
      take(std::integral_constant<Index, 3>(), left);
    else if (left > lanes)
      take(std::integral_constant<Index, 2>(), left);
    else if (left == lanes)
      take(std::integral_constant<Index, 1>(), left);
    else
      take(std::integral_constant<Index, 0>(), left);
  }
}

/// The edges [first, last) of an output row.
struct EdgesOfRow {
  Index first, last;
  Index out_row;
};

void add_total(double& to, double part) {
  to += part;
}
void add_total(ExactSum& to, const ExactSum& part) {
  to.add(part);
}

/// Computes one output row, a tile of columns at a time in registers, in `real` and double precision.
template <Terms terms, class X, class Out>
struct RoundedRow : EdgeRowsOf<terms, X> {
  using Total = double;
  using Edges = EdgeRowsOf<terms, X>;
  using Edges::t;
  Out* out;

  /// Adds columns j .. j + count - 1 of the rows of the edges [first, last) to N vectors. The last vector
  /// ends at column j + count, so that it may overlap the previous one.
  template <Index N>
  void add_edges(Index first, Index last, Index j, Index count, Vector<> (&sum)[N]) const {
    for (Index k = first; k < last; ++k) {
      if (j == 0) this->prefetch(k + this->ahead);
      const X* from = this->row(k) + j;
      const real c = terms == Terms::weighted_rows ? this->coefficient(k) : 1;
      const auto add = [&](Vector<>& to, const X* v) {
        if constexpr (terms == Terms::weighted_rows)
          to += c * load(v);
        else
          to += load(v);
      };
      for (Index i = 0; i + 1 < N; ++i) add(sum[i], from + i * vector_lanes);
      add(sum[N - 1], from + count - vector_lanes);
    }
  }
  /// Adds the last columns, fewer than a vector.
  void add_edges_of_tail(Index first, Index last, Index j, real* sum) const {
    const Index count = t.width - j;
    for (Index k = first; k < last; ++k) {
      if (j == 0) this->prefetch(k + this->ahead);
      const X* from = this->row(k) + j;
      const real c = terms == Terms::weighted_rows ? this->coefficient(k) : 1;
      for (Index i = 0; i < count; ++i) sum[i] += c * number(from[i]);
    }
  }

  /// Adds `count` columns from j on to `totals`, in blocks of edges: N vectors, or fewer values than one
  /// vector if N = 0.
  template <Index N>
  [[gnu::noinline]] void add_blocks(const EdgesOfRow& edges, Index j, Index count, double* totals) const {
    const Index last = edges.last;
    for (Index k = edges.first; k < last; k += block_edges) {
      Vector<> sum[std::max<Index>(N, 1)] = {};
      real sums[std::max<Index>(N, 1) * vector_lanes] = {};
      const Index end = std::min(last, k + block_edges);
      if constexpr (N > 0) {
        add_edges<N>(k, end, j, count, sum);
        std::memcpy(sums + count - vector_lanes, &sum[N - 1], sizeof(Vector<>));
        std::memcpy(sums, sum, (N - 1) * sizeof(Vector<>));
      } else {
        add_edges_of_tail(k, end, j, sums);
      }
      for (Index i = 0; i < count; ++i) totals[i] += static_cast<double>(sums[i]);
    }
  }

  /// Writes or adds the columns from j on.
  void write(Index j, Index count, Index out_row, const double* totals) const {
    const double scale = this->scale_of(out_row);
    const Index place = out_row * t.width + j;
    Out* to = out + place;
    for (Index i = 0; i < count; ++i) {
      const double base = t.accumulate ? static_cast<double>(number(to[i])) : 0;
      set_number(to[i], static_cast<real>(base + scale * totals[i]));
    }
  }

  template <Index N>
  void tile(Index first, Index last, Index j, Index count, Index out_row) const {
    Vector<> sum[N] = {};
    add_edges<N>(first, last, j, count, sum);
    const real scale = this->scale_of(out_row);
    Out *to = out + out_row * t.width + j, *end = to + count - vector_lanes;
    const auto result = [&](const Out* base, Vector<>& of_row) {
      if (!t.accumulate) return scale * of_row;
      forget_origin(of_row);  // rounded once where the processor can
      return load(base) + scale * of_row;
    };
    const Vector<> last_result = result(end, sum[N - 1]);  // before the vector that it overlaps is written
    for (Index i = 0; i + 1 < N; ++i) store(to + i * vector_lanes, result(to + i * vector_lanes, sum[i]));
    store(end, last_result);
  }
  void tail(Index first, Index last, Index j, Index out_row) const {
    real sum[vector_lanes] = {};
    add_edges_of_tail(first, last, j, sum);
    const real scale = this->scale_of(out_row);
    Out* to = out + out_row * t.width + j;
    for (Index i = 0; i < t.width - j; ++i)
      set_number(to[i], (t.accumulate ? number(to[i]) : 0) + scale * sum[i]);
  }

  template <class Visit>
  void for_columns(const Visit& visit) const {
    for_tiles<vector_lanes, max_vectors>(0, t.width, visit);
  }

  void operator()(const EdgesOfRow& edges) const {
    const auto [first, last, out_row] = edges;
    const bool in_blocks = last - first > block_edges;
    for_columns([&](auto n, Index j, Index count) {
      if (in_blocks) {
        double totals[std::max<Index>(n, 1) * vector_lanes] = {};
        add_blocks<n>(edges, j, count, totals);
        write(j, count, out_row, totals);
      } else if constexpr (n > 0) {
        tile<n>(first, last, j, count, out_row);
      } else {
        tail(first, last, j, out_row);
      }
    });
  }
};

constexpr Index lanes_of_double = vector_bytes / 8;
typedef double Doubles __attribute__((vector_size(lanes_of_double * 8)));         // NOLINT: of constant size
typedef real Reals __attribute__((vector_size(lanes_of_double * sizeof(real))));  // NOLINT

/// Loads `count` numbers, at most the lanes of a vector of doubles; the others are 0.
[[gnu::always_inline]] inline Doubles load_doubles(const real* from, Index count) {
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

/// A vector of sums as in ExactSum.
struct ExactVector {
  Doubles high = {}, low = {};

  [[gnu::always_inline]] void add(Doubles x) { add_exactly(high, low, x); }
};

/// Computes one output row of exact sums.
template <Terms terms>
struct ExactRow : EdgeRowsOf<terms, real> {
  using Total = ExactSum;
  using Edges = EdgeRowsOf<terms, real>;
  using Edges::t;
  Index head_width = t.width / t.heads;
  bool has_factors = t.weight != nullptr || t.col_scale != nullptr || t.row_scale != nullptr;

  /// Adds the sums of `count` columns from j on to `totals`; N = 0 for fewer columns than a vector has.
  template <Index N>
  [[gnu::noinline]] void add_blocks(const EdgesOfRow& edges, Index j, Index count, ExactSum* totals) const {
    const auto [first, last, out_row] = edges;
    constexpr Index vectors = std::max<Index>(N, 1);
    ExactVector sum[vectors];
    const Index at_last = std::max<Index>(count - lanes_of_double, 0), head = j / head_width;
    const real scale = this->scale_of(out_row);
    const auto add_edges = [&](auto term) {
      for (Index k = first; k < last; ++k) {
        if (j == 0) this->prefetch(k + this->ahead);
        const real* from = this->row(k) + j;
        const auto add = term(k);
        for (Index i = 0; i + 1 < vectors; ++i)
          add(sum[i], load_doubles(from + i * lanes_of_double, lanes_of_double));
        add(sum[vectors - 1], load_doubles(from + at_last, count));
      }
    };
    if (has_factors)
      add_edges([&](Index k) {
        return [c = static_cast<double>(this->coefficient(k, head) * scale)](
                   ExactVector& to, const Doubles& v) { to.add(c * v); };
      });
    else
      add_edges([](Index) { return [](ExactVector& to, const Doubles& v) { to.add(v); }; });
    double high[vectors * lanes_of_double], low[vectors * lanes_of_double];
    for (Index i = vectors - 1; i >= 0; --i) {  // the last one, which the vector before it may overlap, first
      const Index at = i + 1 < vectors ? i * lanes_of_double : at_last;
      std::memcpy(high + at, &sum[i].high, sizeof(Doubles));
      std::memcpy(low + at, &sum[i].low, sizeof(Doubles));
    }
    for (Index i = 0; i < count; ++i) totals[i].add(ExactSum{high[i], low[i]});
  }

  void write(Index j, Index count, Index out_row, const ExactSum* totals) const {
    const Index place = out_row * t.width + j;
    if (ExactSum* sums = t.out.exact_sums(); sums != nullptr) {
      for (Index i = 0; i < count; ++i) sums[place + i].add(totals[i]);
      return;
    }
    real* to = t.out.reals() + place;
    for (Index i = 0; i < count; ++i)
      to[i] = static_cast<real>((t.accumulate ? static_cast<double>(to[i]) : 0) + totals[i].value());
  }

  template <class Visit>
  void for_columns(const Visit& visit) const {
    constexpr Index most = vector_bytes == 64 ? 8 : 4;
    for (Index j = 0; j < t.width; j += head_width)
      for_tiles<lanes_of_double, most>(j, j + head_width, visit);
  }

  void operator()(const EdgesOfRow& edges) const {
    for_columns([&](auto n, Index j, Index count) {
      ExactSum totals[std::max<Index>(n, 1) * lanes_of_double];
      add_blocks<n>(edges, j, count, totals);
      write(j, count, edges.out_row, totals);
    });
  }
};

template <class Row>
void run(const Row& row, bool keeps) {
  using Total = typename Row::Total;
  const Index width = row.t.width;
  const EdgeParts split(row.t.edges, hub_edges - 1, part_edges);
  const EdgeRows &rows = split.whole_rows(), parts = split.parts();
  for_row_blocks(rows, row.row_bytes, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i)
      if (rows.size(i) <= rows.longest && (rows.size(i) > 0 || !keeps))
        row({rows.begin[i], rows.end[i], rows.row(i)});
  });
  Array<Total> totals(split.size() * width, Total{});
  parallel_for(split.size(), 1, [&](Index part, Index) {
    row.for_columns([&](auto n, Index j, Index count) {
      row.template add_blocks<n>({parts.begin[part], parts.end[part], parts.row(part)}, j, count,
                                 totals.data() + part * width + j);
    });
  });
  split.for_rows([&](Index out_row, Index first, Index last) {
    Total* const sum = totals.data() + first * width;
    for (Index part = first + 1; part < last; ++part)
      for (Index j = 0; j < width; ++j) add_total(sum[j], totals[part * width + j]);
    row.write(0, width, out_row, sum);
  });
}

}  // namespace

void gather_sum(const GatherSum& task) {
  if (task.edges.num_rows <= 0 || task.width == 0) return;
  const auto with_terms = [&](const auto& run_with) {
    if (task.edges.other == nullptr)
      run_with(std::integral_constant<Terms, Terms::rows_of_edges>());
    else if (task.weight != nullptr || task.col_scale != nullptr)
      run_with(std::integral_constant<Terms, Terms::weighted_rows>());
    else
      run_with(std::integral_constant<Terms, Terms::rows>());
  };
  with_terms([&]<Terms terms>(std::integral_constant<Terms, terms>) {
    if (task.accumulator == Accumulator::exact)
      return run(ExactRow<terms>{{task, task.x.reals()}},
                 task.accumulate || task.out.exact_sums() != nullptr);
    with_type(task.x, [&]<class X>(const X* x) {
      with_type(task.out, [&]<class Out>(Out* out) {
        run(RoundedRow<terms, X, Out>{{task, x}, out}, task.accumulate);
      });
    });
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, gather_sum, (const GatherSum& task), (task));
