#include <sar/core/error.hpp>
#include <sar/core/matmul.hpp>
#include <sar/core/packed_product.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/trace.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace sar::inline SAR_PRECISION {
namespace {

using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;
using ConstView = Eigen::Map<const Matrix>;

ConstView rows(const Tensor& t, Index begin, Index end) {
  return {t.row(begin), end - begin, t.shape()[1]};
}
View rows(Tensor& t, Index begin, Index end) {
  return {t.row(begin), end - begin, t.shape()[1]};
}
ConstView view(const Tensor& t) {
  return rows(t, 0, t.num_rows());
}

/// Rows of the long operands in one block: about 32 million operations, 200 microseconds, where an element
/// moved costs as much time as 16 operations; but 256 at least, because Eigen packs the short operand anew
/// for each block (a loss of 3 % at 128 rows, of less than 1 % at 256).
Index block_rows(Index k, Index m) {
  constexpr Index block_operations = Index{1} << 25;
  return std::clamp<Index>(block_operations / (2 * k * m + 16 * (k + m) + 1), 256, 1 << 15);
}

void check(bool fits, const char* formula, const Tensor& a, const Tensor& b, const Tensor& out) {
  const bool matrices = a.shape().dims() == 2 && b.shape().dims() == 2 && out.shape().dims() == 2;
  require<ShapeError>(matrices && fits, formula, ": a has shape ", a.shape(), ", b ", b.shape(), ", out ",
                      out.shape());
}

/// The rows of `out` are independent: out_i = a_i b for each block i of rows.
template <class Short>
void row_blocks(const Tensor& a, const Short& b, Tensor& out, bool accumulate) {
  parallel_for(out.num_rows(), block_rows(b.rows(), b.cols()), [&](Index begin, Index end) {
    View block = rows(out, begin, end);
    if (!accumulate) block.setZero();
    add_product(block, rows(a, begin, end), b);
  });
}

/// How the sum over n rows of a^T b is divided: `parts` sums of `part_rows` rows, each computed in `tiles`
/// independent tiles of `tile_rows` rows of the result.
struct SumPlan {
  Index part_rows, parts;
  Index tile_rows, tiles;
};

/// A power of two of parts divides evenly among the usual numbers of threads. Where a short sum has few
/// parts, the result is divided into tiles, too, although b is then packed once for each tile.
SumPlan plan_sum(Index n, Index k, Index m) {
  constexpr Index max_parts = 256;
  constexpr Index min_tasks = 16;
  constexpr Index min_tile_rows = 128;
  const Index by_memory = n * (k + m) / (32 * k * m);
  const Index by_work = n / block_rows(k, m);
  const auto wanted =
      static_cast<std::uint64_t>(std::clamp<Index>(std::min(by_memory, by_work), 1, max_parts));
  const auto parts = static_cast<Index>(std::bit_floor(wanted));
  SumPlan plan{};
  plan.part_rows = (n + parts - 1) / parts;
  plan.parts = (n + plan.part_rows - 1) / plan.part_rows;
  plan.tiles = std::clamp<Index>(min_tasks / plan.parts, 1, std::max<Index>(k / min_tile_rows, 1));
  plan.tile_rows = (k + plan.tiles - 1) / plan.tiles;
  return plan;
}

}  // namespace

void matmul(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate) {
  const TraceScope scope("matmul", TraceKind::compute);
  check(a.row_size() == b.num_rows() && out.num_rows() == a.num_rows() && out.row_size() == b.row_size(),
        "out [n, m] = a [n, k] b [k, m]", a, b, out);
  row_blocks(a, view(b), out, accumulate);
}

void matmul_nt(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate) {
  const TraceScope scope("matmul_nt", TraceKind::compute);
  check(a.row_size() == b.row_size() && out.num_rows() == a.num_rows() && out.row_size() == b.num_rows(),
        "out [n, m] = a [n, k] (b [m, k])^T", a, b, out);
  row_blocks(a, view(b).transpose(), out, accumulate);
}

void matmul_tn(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate) {
  const TraceScope scope("matmul_tn", TraceKind::compute);
  check(a.num_rows() == b.num_rows() && out.num_rows() == a.row_size() && out.row_size() == b.row_size(),
        "out [k, m] = (a [n, k])^T b [n, m]", a, b, out);
  const Index n = a.num_rows(), k = a.row_size(), m = b.row_size();
  if (!accumulate) out.fill(0);
  if (n == 0 || out.size() == 0) return;

  const SumPlan plan = plan_sum(n, k, m);
  const Index step = block_rows(k, m);
  Tensor partial({plan.parts - 1, k, m});  // the first part is summed in `out`
  parallel_for(plan.parts * plan.tiles, 1, [&](Index task, Index) {
    const Index part = task / plan.tiles, tile = task % plan.tiles;
    const Index first = tile * plan.tile_rows, height = std::min(plan.tile_rows, k - first);
    View sum((part == 0 ? out.data() : partial.row(part - 1)) + first * m, height, m);
    if (part > 0) sum.setZero();
    const Index end = std::min(n, (part + 1) * plan.part_rows);
    for (Index i = part * plan.part_rows; i < end; i += step) {
      const Index stop = std::min(end, i + step);
      add_product(sum, rows(a, i, stop).middleCols(first, height).transpose(), rows(b, i, stop));
      poll_progress();
    }
  });
  parallel_for(out.size(), 1 << 14, [&](Index begin, Index end) {
    for (Index part = 0; part < plan.parts - 1; ++part) {
      const real* addend = partial.row(part);
      for (Index i = begin; i < end; ++i) out.data()[i] += addend[i];
    }
  });
}

}  // namespace sar
