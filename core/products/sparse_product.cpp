// SPDX-License-Identifier: MIT

// sparse_matmul: a row of the result is a sum of rows of b, in the order of the stored columns. Up to eight
// vectors of its columns stay in registers; rows of b are prefetched some stored values ahead.
//
// sparse_matmul_tn: a part of the rows of x adds to its own sum [k, m], row after row, and the parts are
// added in order, in double precision. Where there are few parts, tasks take ranges of columns of x, which
// each finds in each row. A sum has the same terms in the same order for any ranges, so their number may
// depend on that of the threads. Ranges of about equal work come from a sample of the stored columns.
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/products/sparse_product.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/simd/tiles.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <sar/core/isa/isa_begin.hpp>

namespace {

/// visit(constant width, j): columns j .. j + width - 1, for all of m columns, up to eight vectors at a time.
template <class Visit>
void for_wide_columns(Index m, const Visit& visit) {
  constexpr Index widest = 8 * lanes::vector_lanes;
  Index j = 0;
  for (; m - j >= widest; j += widest) visit(std::integral_constant<Index, widest>(), j);
  lanes::for_columns(m - j, [&](auto width, Index at) { visit(width, j + at); });
}

/// Returns the first of sorted columns that is not below `bound`. In a short list, all are compared, several
/// at once, which takes less time than the wrong predictions of a search.
const std::int32_t* first_not_below(const std::int32_t* from, const std::int32_t* to, std::int32_t bound) {
  constexpr Index most_compared = 64;
  if (to - from > most_compared) return std::lower_bound(from, to, bound);
  std::int32_t below = 0;
  for (const std::int32_t* column = from; column < to; ++column) below += *column < bound ? 1 : 0;
  return from + below;
}

}  // namespace

/// out[i] = start[i] + sum over the stored columns c of row i of value b[c], for rows [first, last), where
/// row i of `start` is at start + i * stride; null: 0.
void sum_sparse_rows(const SparseMatrix& x, Index first, Index last, const Tensor& b, const real* start,
                     Index stride, Tensor& out) {
  constexpr Index ahead = 8;
  const Index m = b.row_size();
  const Index* const offsets = x.row_offsets().data();
  const std::int32_t* const columns = x.columns().data();
  const real* const values = x.values().data();
  const real* const rows = b.data();
  const Index end = offsets[last];
  for (Index i = first; i < last; ++i) {
    const real* const before = start == nullptr ? nullptr : start + i * stride;
    for_wide_columns(m, [&](auto width, Index j) {
      using Tile = lanes::Tile<1, decltype(width)::value>;
      Tile sum = before == nullptr ? Tile{} : Tile::from(before + j);
      for (Index k = offsets[i]; k < offsets[i + 1]; ++k) {
        if (k + ahead < end) prefetch_row_near(rows + columns[k + ahead] * m + j, width);
        sum.add(values + k, Tile::from(rows + columns[k] * m + j));
      }
      sum.to(out.row(i) + j);
    });
  }
}

/// sum[c - begin] += value g[i] for the stored columns c in [begin, end) of the rows i in [first, last).
void add_outer_products(const SparseMatrix& x, Index first, Index last, std::int32_t begin, std::int32_t end,
                        const Tensor& g, real* sum) {
  const Index m = g.row_size();
  const Index* const offsets = x.row_offsets().data();
  const std::int32_t* const columns = x.columns().data();
  const real* const values = x.values().data();
  const bool all = begin == 0 && end == x.num_columns();
  for (Index i = first; i < last; ++i) {
    const std::int32_t *from = columns + offsets[i], *to = columns + offsets[i + 1];
    if (!all) {
      from = first_not_below(from, to, begin);
      to = first_not_below(from, to, end);
    }
    if (from == to) continue;
    for_wide_columns(m, [&](auto width, Index j) {
      using Tile = lanes::Tile<1, decltype(width)::value>;
      const Tile row = Tile::from(g.row(i) + j);
      for (const std::int32_t* column = from; column < to; ++column) {
        real* const at = sum + (*column - begin) * m + j;
        Tile tile = Tile::from(at);
        tile.add(values + (column - columns), row);
        tile.to(at);
      }
    });
  }
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, sum_sparse_rows,
             (const SparseMatrix& x, Index first, Index last, const Tensor& b, const real* start,
              Index stride, Tensor& out),
             (x, first, last, b, start, stride, out));
SAR_DISPATCH(void, add_outer_products,
             (const SparseMatrix& x, Index first, Index last, std::int32_t begin, std::int32_t end,
              const Tensor& g, real* sum),
             (x, first, last, begin, end, g, sum));

#if SAR_COMPILED_ONCE
namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index task_operations = 1 << 17;  // per parallel block

void check(bool fits, const char* formula, const SparseMatrix& x, const Tensor& b, const Tensor& out) {
  require<ShapeError>(b.shape().dims() == 2 && out.shape().dims() == 2 && fits, formula, ": x has shape ",
                      x.shape(), ", b ", b.shape(), ", out ", out.shape());
}

/// How x^T g is divided: sums of `part_rows` rows each, computed in ranges of columns of x.
struct SparseSumPlan {
  Index part_rows, parts;
  std::vector<std::int32_t> ranges;  ///< where each begins, and the end of the last
};

SparseSumPlan plan_sum(const SparseMatrix& x, Index m) {
  constexpr Index max_tasks = 64, max_sample = 256;
  const Index n = x.num_rows(), k = x.num_columns(), stored = x.num_stored();
  const Index tasks = std::clamp<Index>(stored * m / task_operations, 1, max_tasks);
  const Index by_rows = std::clamp<Index>(n * m / task_operations, 1, max_tasks);
  const Index by_memory = std::max<Index>(n / (2 * std::max<Index>(k, 1)), 1);
  const auto parts =
      static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(std::min(by_rows, by_memory))));
  SparseSumPlan plan{.part_rows = std::max<Index>((n + parts - 1) / parts, 1), .parts = parts, .ranges = {0}};
  // fewer values of a row in a range than this, and the searches take longer than the sums
  const Index by_search = std::max<Index>(stored / (4 * std::max<Index>(n, 1)), 1);
  const Index by_threads = num_threads() == 1 ? 1 : 2 * num_threads();
  const Index ranges = std::min({std::max<Index>(tasks / parts, 1), by_search, by_threads});
  Array<std::int32_t> sample;
  for (Index i = 0, count = std::min(stored, max_sample); ranges > 1 && i < count; ++i)
    sample.push_back(x.columns()[i * stored / count]);
  std::ranges::sort(sample);
  for (Index r = 1; r < ranges; ++r) {
    const std::int32_t begin = sample[r * std::ssize(sample) / ranges];
    if (begin > plan.ranges.back()) plan.ranges.push_back(begin);
  }
  plan.ranges.push_back(static_cast<std::int32_t>(k));
  return plan;
}

}  // namespace

void sparse_matmul(const SparseMatrix& x, const Tensor& b, Tensor& out, const Addend& addend) {
  const Tensor& bias = addend.bias;
  require<ShapeError>(!bias.defined() || bias.shape() == Shape{out.row_size()},
                      "sparse_matmul: bias has shape ", bias.shape(), ", out ", out.shape());
  const TraceScope scope("sparse_matmul", TraceKind::compute);
  check(x.num_columns() == b.num_rows() && out.shape() == Shape{x.num_rows(), b.row_size()},
        "out [n, m] = x [n, k] b [k, m]", x, b, out);
  const real* const start = addend.accumulate ? std::as_const(out).data()
                            : bias.defined()  ? bias.data()
                                              : nullptr;
  const auto work_before = [&](Index i) { return x.row_offsets()[i] + i; };
  const Index grain = std::max<Index>(task_operations / std::max<Index>(b.row_size(), 1), 1);
  for_blocks_of_work(x.num_rows(), x.num_stored() + x.num_rows(), grain, work_before,
                     [&](Index first, Index last) {
                       sum_sparse_rows(x, first, last, b, start, addend.accumulate ? out.row_size() : 0, out);
                       poll_progress();
                     });
}

void sparse_matmul_tn(const SparseMatrix& x, const Tensor& g, Tensor& out, bool accumulate) {
  const TraceScope scope("sparse_matmul_tn", TraceKind::compute);
  const Index k = x.num_columns(), m = g.row_size();
  check(x.num_rows() == g.num_rows() && out.shape() == Shape{k, m}, "out [k, m] = (x [n, k])^T b [n, m]", x,
        g, out);
  const SparseSumPlan plan = plan_sum(x, m);
  Tensor partial({plan.parts - 1, k, m});  // the first part is summed in `out`
  const Index ranges = std::ssize(plan.ranges) - 1;
  parallel_for(plan.parts * ranges, 1, [&](Index task, Index) {
    const Index part = task / ranges;
    const std::int32_t begin = plan.ranges[task % ranges], end = plan.ranges[task % ranges + 1];
    real* const sum = (part == 0 ? out.data() : partial.row(part - 1)) + begin * m;
    if (part > 0 || !accumulate) std::fill_n(sum, (end - begin) * m, real{0});
    add_outer_products(x, std::min(part * plan.part_rows, x.num_rows()),
                       std::min((part + 1) * plan.part_rows, x.num_rows()), begin, end, g, sum);
  });
  if (plan.parts == 1) return;
  add_parts(partial, out);
}

void transpose(const Tensor& a, Tensor& out, bool accumulate) {
  require<ShapeError>(a.shape().dims() == 2 && out.shape() == Shape{a.row_size(), a.num_rows()},
                      "transpose of shape ", a.shape(), " to shape ", out.shape());
  constexpr Index tile = 16;
  const Index rows = a.num_rows(), columns = a.row_size();
  parallel_for((rows + tile - 1) / tile, 8, [&](Index first, Index last) {
    for (Index i = first * tile; i < std::min(last * tile, rows); i += tile)
      for (Index j = 0; j < columns; ++j)
        for (Index l = i; l < std::min(i + tile, rows); ++l) {
          real& to = out.data()[j * rows + l];
          to = accumulate ? to + a.data()[l * columns + j] : a.data()[l * columns + j];
        }
  });
}

}}  // namespace sar
#endif
