#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>
#include <cstring>

#include <sar/core/isa_begin.hpp>

namespace {

constexpr Index block_bytes = Index{1} << 19;  // gathered bytes of a block: about 50 microseconds of one core
constexpr Index prefetch_bytes = 4096;         // of rows requested ahead
constexpr Index line = 64;                     // bytes of a cache line

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

/// The sum of one output row, a tile of columns at a time in registers.
template <bool Weighted>
struct RowSum {
  const GatherSum& t;
  Index all_edges = t.end[t.num_rows - 1];
  Index ahead =
      std::max<Index>(prefetch_bytes / std::max<Index>(t.width * static_cast<Index>(sizeof(real)), 1), 2);

  [[nodiscard]] const real* row(Index k) const { return t.x + (t.col[k] - t.col_offset) * t.width; }
  [[nodiscard]] real coefficient(Index k) const {
    real c = 1;
    if (t.weight != nullptr) {
      const Index position = t.position_of != nullptr ? t.position_of[k] : k;
      c = t.weight[t.edge_of != nullptr ? t.edge_of[position] : t.first_edge + position];
    }
    if (t.col_scale != nullptr) c *= t.col_scale[t.col[k]];
    return c;
  }
  /// Requests the row of edge k; the edges behind a row may belong to another stage of the sources.
  void prefetch(Index k) const {
    if (k >= all_edges) return;
    const Index at = t.col[k] - t.col_offset;
    if (at < 0 || at >= t.x_rows) return;
    const char* bytes = reinterpret_cast<const char*>(t.x + at * t.width);
    for (Index b = 0; b < t.width * static_cast<Index>(sizeof(real)); b += line)
      __builtin_prefetch(bytes + b);
  }

  template <Index N>
  void tile(Index first, Index last, Index j, real* out, real scale) const {
    Vector sum[N] = {};
    for (Index k = first; k < last; ++k) {
      if (j == 0) prefetch(k + ahead);
      const real* x = row(k) + j;
      if constexpr (Weighted) {
        const real c = coefficient(k);
        for (Index i = 0; i < N; ++i) sum[i] += c * load(x + i * lanes);
      } else {
        for (Index i = 0; i < N; ++i) sum[i] += load(x + i * lanes);
      }
    }
    for (Index i = 0; i < N; ++i) {
      real* to = out + j + i * lanes;
      store(to, t.accumulate ? load(to) + scale * sum[i] : scale * sum[i]);
    }
  }

  /// The last columns, fewer than a vector.
  void tail(Index first, Index last, Index j, real* out, real scale) const {
    const Index count = t.width - j;
    real sum[lanes] = {};
    for (Index k = first; k < last; ++k) {
      if (j == 0) prefetch(k + ahead);
      const real* x = row(k) + j;
      const real c = Weighted ? coefficient(k) : 1;
      for (Index i = 0; i < count; ++i) sum[i] += c * x[i];
    }
    for (Index i = 0; i < count; ++i) out[j + i] = (t.accumulate ? out[j + i] : 0) + scale * sum[i];
  }

  void operator()(Index first, Index last, real* out, real scale) const {
    Index j = 0;
    for (; t.width - j >= max_vectors * lanes; j += max_vectors * lanes)
      tile<max_vectors>(first, last, j, out, scale);
    if constexpr (max_vectors > 8)
      if (t.width - j >= 8 * lanes) tile<8>(first, last, j, out, scale), j += 8 * lanes;
    if (t.width - j >= 4 * lanes) tile<4>(first, last, j, out, scale), j += 4 * lanes;
    if (t.width - j >= 2 * lanes) tile<2>(first, last, j, out, scale), j += 2 * lanes;
    if (t.width - j >= lanes) tile<1>(first, last, j, out, scale), j += lanes;
    if (j < t.width) tail(first, last, j, out, scale);
  }
};

template <bool Weighted>
void run(const GatherSum& t) {
  const RowSum<Weighted> row_sum{t};
  for_row_blocks(t.before != nullptr ? t.before : t.begin, t.num_rows,
                 t.width * static_cast<Index>(sizeof(real)), [&](Index first, Index last) {
                   for (Index i = first; i < last; ++i) {
                     const Index row = t.rows != nullptr ? t.rows[i] : i;
                     if (t.begin[i] == t.end[i] && t.accumulate) continue;
                     row_sum(t.begin[i], t.end[i], t.out + row * t.width,
                             t.row_scale != nullptr ? t.row_scale[row] : 1);
                   }
                 });
}

}  // namespace

void for_row_blocks(const local_index* offsets, Index num_rows, Index bytes_per_edge,
                    FunctionRef<void(Index, Index)> body) {
  if (num_rows <= 0) return;
  // Work up to row i: edges before it, and one per row for those that have none.
  const auto work = [&](Index i) { return offsets[i] - offsets[0] + i; };
  const Index total = work(num_rows - 1) + 1;
  const Index grain = std::max<Index>(block_bytes / std::max<Index>(bytes_per_edge, 1), 16);
  const Index blocks = (total + grain - 1) / grain;
  const auto first_row = [&](Index block) {  // the first row with work(row) >= block * grain
    Index low = 0;
    Index high = num_rows;
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (work(middle) < block * grain)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  parallel_for(blocks, 1, [&](Index block, Index) {
    body(first_row(block), block + 1 == blocks ? num_rows : first_row(block + 1));
  });
}

void gather_sum(const GatherSum& task) {
  if (task.num_rows <= 0 || task.width == 0) return;
  if (task.weight != nullptr || task.col_scale != nullptr)
    run<true>(task);
  else
    run<false>(task);
}

#include <sar/core/isa_end.hpp>

SAR_DISPATCH(void, gather_sum, (const GatherSum& task), (task));
SAR_DISPATCH(void, for_row_blocks,
             (const local_index* offsets, Index num_rows, Index bytes_per_edge,
              FunctionRef<void(Index, Index)> body),
             (offsets, num_rows, bytes_per_edge, body));
