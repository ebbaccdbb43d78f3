#include <sar/core/memory.hpp>
#include <sar/core/row_blocks.hpp>
#include <sar/core/row_requests.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <vector>

#include <sar/core/isa_begin.hpp>

namespace {

constexpr Index block_bytes = Index{1} << 19;  // gathered bytes of a block: about 50 microseconds of one core
constexpr Index block_edges = 1024;            // terms that are added in `real`; blocks of them in double
constexpr Index hub_edges = 1 << 16;           // a row with so many is divided
constexpr Index part_edges = 1 << 14;          // into parts of so many

constexpr Index vector_bytes = SAR_VECTOR_BYTES;
constexpr Index max_vectors = vector_bytes == 64 ? 16 : 8;  // accumulators that fit the registers
using Vector [[gnu::vector_size(vector_bytes)]] = real;
constexpr Index lanes = vector_bytes / static_cast<Index>(sizeof(real));

inline Vector load(const real* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

inline void store(real* to, const Vector& v) {
  std::memcpy(to, &v, sizeof v);
}

enum class Terms { rows, weighted_rows, rows_of_edges };

/// The sum of one output row, a tile of columns at a time in registers.
template <Terms terms>
struct RowSum {
  const GatherSum& t;
  Index all_edges = t.end[t.num_rows - 1];
  Index ahead = rows_ahead(t.width * static_cast<Index>(sizeof(real)));

  [[nodiscard]] Index edge(Index k) const {
    const Index position = t.position_of != nullptr ? t.position_of[k] : k;
    return t.first_edge + position;
  }
  [[nodiscard]] const real* row(Index k) const {
    if constexpr (terms == Terms::rows_of_edges) return t.x + edge(k) * t.width;
    const Index at = t.col[k] - t.col_offset;
    return t.x + (t.x_row != nullptr ? t.x_row[at] : at) * t.width;
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
  /// Requests the row of edge k; the edges behind a row may belong to another stage of the sources.
  void request(Index k) const {
    if (k >= all_edges) return;
    if constexpr (terms != Terms::rows_of_edges) {
      const Index at = t.col[k] - t.col_offset;
      if (at < 0 || at >= t.x_rows) return;
    }
    request_row(row(k), t.width);
  }

  /// sum += N vectors of columns from j on, of the rows of edges [first, last). The last vector ends with
  /// column j + count, so it may share columns with the one before.
  template <Index N>
  void add_edges(Index first, Index last, Index j, Index count, Vector (&sum)[N]) const {
    for (Index k = first; k < last; ++k) {
      if (j == 0) request(k + ahead);
      const real* x = row(k) + j;
      const real c = terms == Terms::weighted_rows ? coefficient(k) : 1;
      const auto add = [&](Vector& to, const real* from) {
        if constexpr (terms == Terms::weighted_rows)
          to += c * load(from);
        else
          to += load(from);
      };
      for (Index i = 0; i + 1 < N; ++i) add(sum[i], x + i * lanes);
      add(sum[N - 1], x + count - lanes);
    }
  }
  /// The last columns, fewer than a vector.
  void add_edges_of_tail(Index first, Index last, Index j, real* sum) const {
    const Index count = t.width - j;
    for (Index k = first; k < last; ++k) {
      if (j == 0) request(k + ahead);
      const real* x = row(k) + j;
      const real c = terms == Terms::weighted_rows ? coefficient(k) : 1;
      for (Index i = 0; i < count; ++i) sum[i] += c * x[i];
    }
  }

  /// totals += the sum of `count` columns from j on: N vectors, or, N = 0, fewer than one.
  template <Index N>
  [[gnu::noinline]] void add_blocks(Index first, Index last, Index j, Index count, double* totals) const {
    const Index step = t.out_in_double != nullptr ? 1 : block_edges;
    for (Index k = first; k < last; k += step) {
      Vector sum[std::max<Index>(N, 1)] = {};
      real sums[std::max<Index>(N, 1) * lanes] = {};
      const Index end = std::min(last, k + step);
      if constexpr (N > 0) {
        add_edges<N>(k, end, j, count, sum);
        std::memcpy(sums + count - lanes, &sum[N - 1], sizeof(Vector));
        std::memcpy(sums, sum, (N - 1) * sizeof(Vector));
      } else {
        add_edges_of_tail(k, end, j, sums);
      }
      for (Index i = 0; i < count; ++i) totals[i] += static_cast<double>(sums[i]);
    }
  }

  /// Writes, or adds, columns from j on.
  void write(Index j, Index count, Index out_row, const double* totals) const {
    const double scale = scale_of(out_row);
    const auto write_to = [&](auto* to) {
      using Number = std::remove_pointer_t<decltype(to)>;
      for (Index i = 0; i < count; ++i)
        to[i] = static_cast<Number>((t.accumulate ? static_cast<double>(to[i]) : 0) + scale * totals[i]);
    };
    const Index place = out_row * t.width + j;
    if (t.out_in_double != nullptr)
      write_to(t.out_in_double + place);
    else
      write_to(t.out + place);
  }

  template <Index N>
  void tile(Index first, Index last, Index j, Index count, Index out_row) const {
    Vector sum[N] = {};
    add_edges<N>(first, last, j, count, sum);
    const real scale = scale_of(out_row);
    real *out = t.out + out_row * t.width + j, *end = out + count - lanes;
    // read before the vector is written that may share columns with it
    const Vector last_sum = t.accumulate ? load(end) + scale * sum[N - 1] : scale * sum[N - 1];
    for (Index i = 0; i + 1 < N; ++i) {
      real* to = out + i * lanes;
      store(to, t.accumulate ? load(to) + scale * sum[i] : scale * sum[i]);
    }
    store(end, last_sum);
  }
  void tail(Index first, Index last, Index j, Index out_row) const {
    real sum[lanes] = {};
    add_edges_of_tail(first, last, j, sum);
    const real scale = scale_of(out_row);
    real* out = t.out + out_row * t.width + j;
    for (Index i = 0; i < t.width - j; ++i) out[i] = (t.accumulate ? out[i] : 0) + scale * sum[i];
  }

  /// visit(std::integral_constant<Index, N>, j, count) for `count` columns from j on, in N vectors; N = 0
  /// where a row has fewer than a vector. No tile leaves a part of a vector to the next.
  template <class Visit>
  void for_tiles(const Visit& visit) const {
    for (Index j = 0; j < t.width;) {
      const Index left = t.width - j;
      const auto whole = [left](Index n) { return left == n * lanes || left >= (n + 1) * lanes; };
      const auto take = [&]<Index n>(std::integral_constant<Index, n> vectors, Index count) {
        visit(vectors, j, count);
        j += count;
      };
      if (whole(max_vectors))
        take(std::integral_constant<Index, max_vectors>(), max_vectors * lanes);
      else if (max_vectors > 8 && whole(8))
        take(std::integral_constant<Index, 8>(), 8 * lanes);
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

  void operator()(Index first, Index last, Index out_row) const {
    const bool in_blocks = last - first > block_edges || t.out_in_double != nullptr;
    for_tiles([&](auto n, Index j, Index count) {
      if (in_blocks) {
        double totals[std::max<Index>(n, 1) * lanes] = {};
        add_blocks<n>(first, last, j, count, totals);
        write(j, count, out_row, totals);
      } else if constexpr (n > 0) {
        tile<n>(first, last, j, count, out_row);
      } else {
        tail(first, last, j, out_row);
      }
    });
  }

  /// The row of a hub, in parts of which each is a task.
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

template <Terms terms>
void run(const GatherSum& t) {
  const RowSum<terms> row_sum{t};
  const auto out_row = [&](Index i) { return t.rows != nullptr ? Index{t.rows[i]} : i; };
  std::vector<Index> hubs;
  std::mutex hubs_mutex;
  for_row_blocks(t.before != nullptr ? t.before : t.begin, t.num_rows,
                 t.width * static_cast<Index>(sizeof(real)), [&](Index first, Index last) {
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
  // Edges, and one for each row, for those that have none.
  const auto work_before = [&](Index i) { return offsets[i] - offsets[0] + i; };
  const Index grain = std::max<Index>(block_bytes / std::max<Index>(bytes_per_edge, 1), 16);
  for_blocks_of_work(num_rows, work_before(num_rows - 1) + 1, grain, work_before, body);
}

void gather_sum(const GatherSum& task) {
  if (task.num_rows <= 0 || task.width == 0) return;
  if (task.col == nullptr)
    run<Terms::rows_of_edges>(task);
  else if (task.weight != nullptr || task.col_scale != nullptr)
    run<Terms::weighted_rows>(task);
  else
    run<Terms::rows>(task);
}

#include <sar/core/isa_end.hpp>

SAR_DISPATCH(void, gather_sum, (const GatherSum& task), (task));
SAR_DISPATCH(void, for_row_blocks,
             (const local_index* offsets, Index num_rows, Index bytes_per_edge,
              FunctionRef<void(Index, Index)> body),
             (offsets, num_rows, bytes_per_edge, body));
