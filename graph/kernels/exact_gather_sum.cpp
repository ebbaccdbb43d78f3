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
  void take(Index count, ExactSum* to) const {
    double numbers[2][vectors * lanes_of_double];
    std::memcpy(numbers[0], high, sizeof high);
    std::memcpy(numbers[1], low, sizeof low);
    for (Index j = 0; j < count; ++j) to[j] = {numbers[0][j], numbers[1][j]};
  }
};

/// Loads `count` numbers, at most the lanes of a vector of doubles; the others are 0.
[[gnu::always_inline]] inline Doubles load(const real* from, Index count) {
  Reals v = {};
  if (count >= lanes_of_double)
    std::memcpy(&v, from, sizeof v);
  else
    std::memcpy(&v, from, static_cast<std::size_t>(count) * sizeof(real));
  return __builtin_convertvector(v, Doubles);
}

/// The coefficient of sums without factors.
struct One {
  friend const Doubles& operator*(One, const Doubles& x) { return x; }
};

/// Computes one output row.
struct ExactRow {
  const GatherSum& t;
  Index heads;
  ExactSum* sums;
  Index all_edges = t.end[t.num_rows - 1];
  Index row_bytes = t.width * static_cast<Index>(sizeof(real));
  Index ahead = rows_ahead(row_bytes);

  [[nodiscard]] Index edge(Index k) const {
    return t.first_edge + (t.position_of != nullptr ? t.position_of[k] : k);
  }
  [[nodiscard]] const real* row(Index k) const {
    if (t.col == nullptr) return t.x + edge(k) * t.width;
    const Index at = t.col[k] - t.col_offset;
    return t.x + (t.x_row != nullptr ? t.x_row[at] : at) * t.width;
  }
  void prefetch(Index k) const {
    if (k >= all_edges) return;
    if (t.col != nullptr) {
      const Index at = t.col[k] - t.col_offset;
      if (at < 0 || at >= t.x_rows) return;
    }
    prefetch_bytes(row(k), row_bytes);
  }
  [[nodiscard]] real coefficient(Index k, Index head, Index out_row) const {
    real c = t.weight != nullptr ? t.weight[edge(k) * heads + head] : 1;
    if (t.col_scale != nullptr) c *= t.col_scale[t.col[k]];
    if (t.row_scale != nullptr) c *= t.row_scale[out_row];
    return c;
  }

  template <Index vectors>
  void tile(Index first, Index last, Index j, Index count, Index out_row, ExactSum* to) const {
    TileSums<vectors> sum;
    const Index head = heads == 1 ? 0 : j / (t.width / heads), rest = count - (vectors - 1) * lanes_of_double;
    const auto add_edges = [&](auto factor) {
      for (Index k = first; k < last; ++k) {
        if (j == 0) prefetch(k + ahead);
        const real* x = row(k) + j;
        const auto c = factor(k);
        for (Index i = 0; i + 1 < vectors; ++i)
          sum.add(i, c * load(x + i * lanes_of_double, lanes_of_double));
        sum.add(vectors - 1, c * load(x + (vectors - 1) * lanes_of_double, rest));
      }
    };
    if (t.weight != nullptr || t.col_scale != nullptr || t.row_scale != nullptr)
      add_edges([&](Index k) { return static_cast<double>(coefficient(k, head, out_row)); });
    else
      add_edges([](Index) { return One(); });
    sum.take(count, to);
  }
  /// The widest tile at column j of `left` columns; returns its columns.
  template <Index vectors = most_vectors>
  Index widest_tile(Index first, Index last, Index j, Index left, Index out_row, ExactSum* to) const {
    if constexpr (vectors > 1)
      if (left < vectors * lanes_of_double)
        return widest_tile<vectors / 2>(first, last, j, left, out_row, to);
    const Index count = std::min(left, vectors * lanes_of_double);
    tile<vectors>(first, last, j, count, out_row, to + j);
    return count;
  }
  /// to [width] = the sums over the edges [first, last)
  void operator()(Index first, Index last, Index out_row, ExactSum* to) const {
    const Index head_width = t.width / heads;
    for (Index end = head_width; end <= t.width; end += head_width)
      for (Index j = end - head_width; j < end;) j += widest_tile(first, last, j, end - j, out_row, to);
  }

  void write(const ExactSum* of_row, Index out_row) const {
    if (sums != nullptr) {
      ExactSum* to = sums + out_row * t.width;
      for (Index j = 0; j < t.width; ++j) to[j].add(of_row[j]);
      return;
    }
    real* to = t.out + out_row * t.width;
    for (Index j = 0; j < t.width; ++j)
      to[j] = static_cast<real>((t.accumulate ? static_cast<double>(to[j]) : 0) + of_row[j].value());
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
                   Array<ExactSum> of_row(t.width);
                   for (Index i = first; i < last; ++i) {
                     if (t.begin[i] == t.end[i] && keeps) continue;
                     if (t.end[i] - t.begin[i] >= hub_edges) {
                       const std::lock_guard lock(hubs_mutex);
                       hubs.push_back(i);
                       continue;
                     }
                     row_sum(t.begin[i], t.end[i], out_row(i), of_row.data());
                     row_sum.write(of_row.data(), out_row(i));
                   }
                 });
  for (const Index i : hubs) {
    const Index parts = (t.end[i] - t.begin[i] + part_edges - 1) / part_edges;
    Array<ExactSum> of_parts(parts * t.width);
    parallel_for(parts, 1, [&](Index part, Index) {
      const Index first = t.begin[i] + part * part_edges;
      row_sum(first, std::min<Index>(t.end[i], first + part_edges), out_row(i),
              of_parts.data() + part * t.width);
    });
    for (Index at = t.width; at < std::ssize(of_parts); ++at) of_parts[at % t.width].add(of_parts[at]);
    row_sum.write(of_parts.data(), out_row(i));
  }
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, exact_gather_sum, (const GatherSum& task, Index heads, ExactSum* sums),
             (task, heads, sums));
