#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>

namespace sar {
namespace {

constexpr index block_bytes = index{1} << 19;  // gathered bytes of a block: about 50 microseconds of one core
constexpr index prefetch_edges = 8;            // rows requested ahead
constexpr index line = 64;                     // bytes of a cache line

/// sum = (or +=) c0 x0 + c1 x1 + ..., with coefficients only where there are any.
template <bool Weighted>
struct RowSum {
  const GatherSum& t;

  [[nodiscard]] const real* row(index k) const { return t.x + (t.col[k] - t.col_offset) * t.width; }
  [[nodiscard]] real coefficient(index k) const {
    if constexpr (!Weighted) return 1;
    real c = 1;
    if (t.weight != nullptr) c = t.weight[t.edge_of != nullptr ? t.edge_of[k] : t.first_edge + k];
    if (t.col_scale != nullptr) c *= t.col_scale[t.col[k]];
    return c;
  }

  /// Requests the row of edge k; the edges behind a row may belong to another piece of the sources.
  void prefetch(index k) const {
    const index at = t.col[k] - t.col_offset;
    if (at < 0 || at >= t.x_rows) return;
    const char* bytes = reinterpret_cast<const char*>(t.x + at * t.width);
    for (index b = 0; b < t.width * static_cast<index>(sizeof(real)); b += line) __builtin_prefetch(bytes + b);
  }

  void operator()(index k, index last, real* __restrict sum) const {
    const index width = t.width;
    const index ahead_end = t.end[t.num_rows - 1];
    std::fill(sum, sum + width, real{0});
    for (; k + 2 <= last; k += 2) {
      if (k + prefetch_edges + 1 < ahead_end) {
        prefetch(k + prefetch_edges);
        prefetch(k + prefetch_edges + 1);
      }
      const real* __restrict a = row(k);
      const real* __restrict b = row(k + 1);
      if constexpr (Weighted) {
        const real ca = coefficient(k);
        const real cb = coefficient(k + 1);
        for (index j = 0; j < width; ++j) sum[j] += ca * a[j] + cb * b[j];
      } else {
        for (index j = 0; j < width; ++j) sum[j] += a[j] + b[j];
      }
    }
    if (k < last) {
      if (k + prefetch_edges < ahead_end) prefetch(k + prefetch_edges);
      const real* __restrict a = row(k);
      const real ca = coefficient(k);
      for (index j = 0; j < width; ++j) sum[j] += ca * a[j];
    }
  }
};

template <bool Weighted>
void run(const GatherSum& t) {
  for_row_blocks(t.begin, t.num_rows, t.width * static_cast<index>(sizeof(real)), [&](index first, index last) {
    const RowSum<Weighted> row_sum{t};
    thread_local std::vector<real> buffer;
    buffer.resize(static_cast<std::size_t>(t.width));
    real* __restrict sum = buffer.data();
    for (index i = first; i < last; ++i) {
      const index row = t.rows != nullptr ? t.rows[i] : i;
      real* __restrict out = t.out + row * t.width;
      if (t.begin[i] == t.end[i]) {
        if (!t.accumulate) std::fill(out, out + t.width, real{0});
        continue;
      }
      row_sum(t.begin[i], t.end[i], sum);
      const real scale = t.row_scale != nullptr ? t.row_scale[row] : 1;
      if (t.accumulate)
        for (index j = 0; j < t.width; ++j) out[j] += scale * sum[j];
      else
        for (index j = 0; j < t.width; ++j) out[j] = scale * sum[j];
    }
  });
}

}  // namespace

void for_row_blocks(const local_index* offsets, index num_rows, index bytes_per_edge, FunctionRef<void(index, index)> body) {
  if (num_rows <= 0) return;
  // Work up to row i: edges before it, and one per row for those that have none.
  const auto work = [&](index i) { return offsets[i] - offsets[0] + i; };
  const index total = work(num_rows - 1) + 1;
  const index grain = std::max<index>(block_bytes / std::max<index>(bytes_per_edge, 1), 16);
  const index blocks = (total + grain - 1) / grain;
  const auto first_row = [&](index block) {  // the first row with work(row) >= block * grain
    index low = 0;
    index high = num_rows;
    while (low < high) {
      const index middle = low + (high - low) / 2;
      if (work(middle) < block * grain)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  parallel_for(blocks, 1, [&](index block, index) { body(first_row(block), block + 1 == blocks ? num_rows : first_row(block + 1)); });
}

void gather_sum(const GatherSum& task) {
  if (task.num_rows <= 0 || task.width == 0) return;
  if (task.weight != nullptr || task.col_scale != nullptr)
    run<true>(task);
  else
    run<false>(task);
}

}  // namespace sar
