// SPDX-License-Identifier: MIT

/// Sums of gathered rows; the head of gather_sum.hpp has the formula.
///
/// Loop order: blocks of output rows in parallel, output rows in a block, tiles of columns of a row, edges of
/// the row. The sum of a tile (up to 16 vectors with AVX-512, 8 otherwise) stays in registers over all edges.
/// The loop over the first tile prefetches whole rows, about 8 KiB of them ahead, so that the other tiles hit
/// the cache. Each gathered row is read once from memory, and each output row is written once.
///
/// A width that is not a multiple of the vector length ends with a vector that overlaps the one before it;
/// only rows narrower than one vector use scalar code. Rows with more than 1,024 edges flush their registers
/// to double precision totals every 1,024 edges. Rows with 65,536 edges or more are processed after all
/// others, split into parts that run in parallel.
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/row_blocks.hpp>
#include <sar/core/simd/bfloat16_lanes.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/simd/prefetch.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <vector>

#include <sar/core/isa/isa_begin.hpp>

namespace {

using lanes::load;
using lanes::number;
using lanes::set_number;
using lanes::Vector;
using lanes::vector_bytes;
using lanes::vector_lanes;

/// Stores by memcpy: with lanes::store, GCC 12 takes scale * sum out of both branches of `accumulate`, and no
/// longer rounds the multiply-add once.
inline void store(real* to, const Vector<>& v) {
  std::memcpy(to, &v, sizeof v);
}
inline void store(Bfloat16* to, const Vector<>& v) {
  lanes::store(to, v);
}

constexpr Index block_bytes = Index{1} << 19;  // gathered bytes of a block
constexpr Index block_edges = 1024;            // terms summed in `real`; blocks of them in double precision
constexpr Index hub_edges = 1 << 16;           // a row with this many edges is split
constexpr Index part_edges = 1 << 14;          // edges of a part of such a row
constexpr Index max_vectors = vector_bytes == 64 ? 16 : 8;  // accumulators that fit the registers

enum class Terms { rows, weighted_rows, rows_of_edges };

/// The types of the gathered rows and of the sums.
template <class X, class Out>
struct RowTypes {
  const X* x;
  Out* out;
};
template <class X, class Out>
RowTypes(const X*, Out*) -> RowTypes<X, Out>;

/// Computes one output row, a tile of columns at a time in registers.
template <Terms terms, class X, class Out>
struct RowSum {
  const GatherSum& t;
  RowTypes<X, Out> rows;
  Index all_edges = t.end[t.num_rows - 1];
  Index row_bytes = t.width * static_cast<Index>(sizeof(X));
  Index ahead = rows_ahead(row_bytes);

  [[nodiscard]] Index edge(Index k) const {
    const Index position = t.position_of != nullptr ? t.position_of[k] : k;
    return t.first_edge + position;
  }
  [[nodiscard]] const X* row(Index k) const {
    if constexpr (terms == Terms::rows_of_edges) return rows.x + edge(k) * t.width;
    const Index at = t.col[k] - t.col_offset;
    return rows.x + (t.x_row != nullptr ? t.x_row[at] : at) * t.width;
  }
  [[nodiscard]] real coefficient(Index k) const {
    real c = 1;
    if (t.weight != nullptr) c = t.weight[edge(k)];
    if (t.col_scale != nullptr) c *= t.col_scale[t.col[k]];
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
      const Index at = t.col[k] - t.col_offset;
      if (at < 0 || at >= t.x_rows) return;
    }
    prefetch_bytes(row(k), row_bytes);
  }

  /// Adds columns j .. j + count - 1 of the rows of the edges [first, last) to N vectors. The last vector
  /// ends at column j + count, so that it may overlap the previous one.
  template <Index N>
  void add_edges(Index first, Index last, Index j, Index count, Vector<> (&sum)[N]) const {
    for (Index k = first; k < last; ++k) {
      if (j == 0) prefetch(k + ahead);
      const X* x = row(k) + j;
      const real c = terms == Terms::weighted_rows ? coefficient(k) : 1;
      const auto add = [&](Vector<>& to, const X* from) {
        if constexpr (terms == Terms::weighted_rows)
          to += c * load(from);
        else
          to += load(from);
      };
      for (Index i = 0; i + 1 < N; ++i) add(sum[i], x + i * vector_lanes);
      add(sum[N - 1], x + count - vector_lanes);
    }
  }
  /// Adds the last columns, fewer than a vector.
  void add_edges_of_tail(Index first, Index last, Index j, real* sum) const {
    const Index count = t.width - j;
    for (Index k = first; k < last; ++k) {
      if (j == 0) prefetch(k + ahead);
      const X* x = row(k) + j;
      const real c = terms == Terms::weighted_rows ? coefficient(k) : 1;
      for (Index i = 0; i < count; ++i) sum[i] += c * number(x[i]);
    }
  }

  /// Adds `count` columns from j on to `totals`, in blocks of edges: N vectors, or fewer values than one
  /// vector if N = 0.
  template <Index N>
  [[gnu::noinline]] void add_blocks(Index first, Index last, Index j, Index count, double* totals) const {
    for (Index k = first; k < last; k += block_edges) {
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
    const double scale = scale_of(out_row);
    const Index place = out_row * t.width + j;
    Out* to = rows.out + place;
    for (Index i = 0; i < count; ++i) {
      const double base = t.accumulate ? static_cast<double>(number(to[i])) : 0;
      set_number(to[i], static_cast<real>(base + scale * totals[i]));
    }
  }

  template <Index N>
  void tile(Index first, Index last, Index j, Index count, Index out_row) const {
    Vector<> sum[N] = {};
    add_edges<N>(first, last, j, count, sum);
    const real scale = scale_of(out_row);
    Out *out = rows.out + out_row * t.width + j, *end = out + count - vector_lanes;
    // Read before the previous vector, which may overlap, is written.
    const Vector<> last_sum = t.accumulate ? load(end) + scale * sum[N - 1] : scale * sum[N - 1];
    for (Index i = 0; i + 1 < N; ++i) {
      Out* to = out + i * vector_lanes;
      store(to, t.accumulate ? load(to) + scale * sum[i] : scale * sum[i]);
    }
    store(end, last_sum);
  }
  void tail(Index first, Index last, Index j, Index out_row) const {
    real sum[vector_lanes] = {};
    add_edges_of_tail(first, last, j, sum);
    const real scale = scale_of(out_row);
    Out* out = rows.out + out_row * t.width + j;
    for (Index i = 0; i < t.width - j; ++i)
      set_number(out[i], (t.accumulate ? number(out[i]) : 0) + scale * sum[i]);
  }

  /// Calls visit(std::integral_constant<Index, N>, j, count) for tiles of `count` columns in N vectors; N = 0
  /// for rows narrower than a vector. No tile leaves less than a vector to the next one.
  template <class Visit>
  void for_tiles(const Visit& visit) const {
    for (Index j = 0; j < t.width;) {
      const Index left = t.width - j;
      const auto whole = [left](Index n) {
        return left == n * vector_lanes || left >= (n + 1) * vector_lanes;
      };
      const auto take = [&]<Index n>(std::integral_constant<Index, n> vectors, Index count) {
        visit(vectors, j, count);
        j += count;
      };
      if (whole(max_vectors))
        take(std::integral_constant<Index, max_vectors>(), max_vectors * vector_lanes);
      else if (max_vectors > 8 && whole(8))
        take(std::integral_constant<Index, 8>(), 8 * vector_lanes);
      else if (whole(4))
        take(std::integral_constant<Index, 4>(), 4 * vector_lanes);
      else if (left > 4 * vector_lanes)
        take(std::integral_constant<Index, 2>(), 2 * vector_lanes);
      else if (left > 3 * vector_lanes)
        take(std::integral_constant<Index, 4>(), left);
      else if (left > 2 * vector_lanes)
        take(std::integral_constant<Index, 3>(), left);
      else if (left > vector_lanes)
        take(std::integral_constant<Index, 2>(), left);
      else if (left == vector_lanes)
        take(std::integral_constant<Index, 1>(), left);
      else
        take(std::integral_constant<Index, 0>(), left);
    }
  }

  void operator()(Index first, Index last, Index out_row) const {
    const bool in_blocks = last - first > block_edges;
    for_tiles([&](auto n, Index j, Index count) {
      if (in_blocks) {
        double totals[std::max<Index>(n, 1) * vector_lanes] = {};
        add_blocks<n>(first, last, j, count, totals);
        write(j, count, out_row, totals);
      } else if constexpr (n > 0) {
        tile<n>(first, last, j, count, out_row);
      } else {
        tail(first, last, j, out_row);
      }
    });
  }

  /// Computes the row of a hub, split into parts that run in parallel.
  void hub(Index first, Index last, Index out_row) const {
    const Index parts = (last - first + part_edges - 1) / part_edges;
    Array<double> totals(parts * t.width, 0);
    parallel_for(parts, 1, [&](Index part, Index) {
      const Index begin = first + part * part_edges;
      for_tiles([&](auto n, Index j, Index count) {
        add_blocks<n>(begin, std::min(last, begin + part_edges), j, count,
                      totals.data() + part * t.width + j);
      });
    });
    for (Index part = 1; part < parts; ++part)
      for (Index j = 0; j < t.width; ++j) totals[j] += totals[part * t.width + j];
    write(0, t.width, out_row, totals.data());
  }
};

template <Terms terms, class X, class Out>
void run(const GatherSum& t, const RowTypes<X, Out>& rows) {
  const RowSum<terms, X, Out> row_sum{t, rows};
  const auto out_row = [&](Index i) { return t.rows != nullptr ? Index{t.rows[i]} : i; };
  std::vector<Index> hubs;
  std::mutex hubs_mutex;
  for_row_blocks(t.before != nullptr ? t.before : t.begin, t.num_rows,
                 t.width * static_cast<Index>(sizeof(X)), [&](Index first, Index last) {
                   for (Index i = first; i < last; ++i) {
                     if (t.begin[i] == t.end[i] && t.accumulate) continue;
                     if (t.end[i] - t.begin[i] >= hub_edges) {
                       const std::lock_guard lock(hubs_mutex);
                       hubs.push_back(i);
                     } else {
                       row_sum(t.begin[i], t.end[i], out_row(i));
                     }
                   }
                 });
  for (const Index i : hubs) row_sum.hub(t.begin[i], t.end[i], out_row(i));
}

}  // namespace

void for_row_blocks(const local_index* offsets, Index num_rows, Index bytes_per_edge,
                    FunctionRef<void(Index, Index)> body) {
  if (num_rows <= 0) return;
  // Work is the number of edges plus one per row, because rows without edges are written too.
  const auto work_before = [&](Index i) { return offsets[i] - offsets[0] + i; };
  const Index grain = std::max<Index>(block_bytes / std::max<Index>(bytes_per_edge, 1), 16);
  for_blocks_of_work(num_rows, work_before(num_rows - 1) + 1, grain, work_before, body);
}

void gather_sum(const GatherSum& task) {
  if (task.num_rows <= 0 || task.width == 0) return;
  const auto run_on = [&](auto rows) {
    if (task.col == nullptr)
      run<Terms::rows_of_edges>(task, rows);
    else if (task.weight != nullptr || task.col_scale != nullptr)
      run<Terms::weighted_rows>(task, rows);
    else
      run<Terms::rows>(task, rows);
  };
  if (task.x_bfloat16 != nullptr)
    task.out_bfloat16 != nullptr ? run_on(RowTypes{task.x_bfloat16, task.out_bfloat16})
                                 : run_on(RowTypes{task.x_bfloat16, task.out});
  else
    task.out_bfloat16 != nullptr ? run_on(RowTypes{task.x, task.out_bfloat16})
                                 : run_on(RowTypes{task.x, task.out});
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, gather_sum, (const GatherSum& task), (task));
SAR_DISPATCH(void, for_row_blocks,
             (const local_index* offsets, Index num_rows, Index bytes_per_edge,
              FunctionRef<void(Index, Index)> body),
             (offsets, num_rows, bytes_per_edge, body));
