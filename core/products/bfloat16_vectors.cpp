// SPDX-License-Identifier: MIT

// Loop order of multiply_vectors(): blocks of 48 rows of a > panels of b, as wide as a tile > tiles of 6 rows
// x 4 vectors (12 x 2 for the last columns) > the depth in steps of 2. Innermost, a step loads the pairs of
// the panel's columns, broadcasts one pair of a per row of the tile, and does rows x vectors multiply-adds
// (VDPBF16PS) on sums in registers. With two parts, 16 steps are done for h_a h_b, then for l_a h_b and h_a
// l_b.
//
// Bytes moved: from memory, a once and out once; the tiles of b once per 48 rows of a, from the L2 cache.
// Rows of `a` in bfloat16 are read in place, others are rounded to a buffer in the cache.
#include <sar/core/products/bfloat16_registers.hpp>
#include <sar/core/products/bfloat16_tiles.hpp>
#include <sar/core/simd/loop_hints.hpp>

#if defined(__x86_64__) && !SAR_DOUBLE  // has_bfloat16_tiles

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,prefer-vector-width=512")
#endif

namespace sar { inline namespace SAR_PRECISION {
namespace {

using namespace bfloat16_registers;

constexpr Index block_rows = 48;
constexpr Index tile_depth = 32;
constexpr Index tile_numbers = 16 * tile_depth;
constexpr int most_vectors = 4;

/// Returns the rows of a tile of `vectors` vectors of sums: divisors of block_rows.
constexpr int tile_rows(int vectors) {
  return vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
}

/// Rows of a, as pairs of neighbors along the depth: pair k of row i of a part is at part + i * row_step + k
/// * pair_step.
struct LeftPairs {
  const std::uint16_t* part[2];
  Index row_step, pair_step;
};

/// The pairs of up to block_rows rows of a.
class LeftBlock {
 public:
  LeftBlock(Index depth, int parts)
      : padded_((depth + tile_depth - 1) / tile_depth * tile_depth),
        parts_(parts),
        memory_(static_cast<std::size_t>(parts * block_rows * padded_)) {}

  /// `in_place`: rows of bfloat16 numbers may be read where they are until the last product with them.
  [[nodiscard]] LeftPairs pairs(const MatrixView& a, bool in_place) {
    if (a.col_step == 1 && in_place && a.bfloat16 != nullptr && a.cols % 2 == 0)
      return {{words(a), nullptr}, a.row_step, 2};
    a.col_step == 1 ? pack_rows(a) : pack_columns(a);
    const Index row_step = a.col_step == 1 ? padded_ : 2, pair_step = a.col_step == 1 ? 2 : 2 * block_rows;
    return {{part(0), parts_ == 2 ? part(1) : nullptr}, row_step, pair_step};
  }

 private:
  static const std::uint16_t* words(const MatrixView& a) {
    return reinterpret_cast<const std::uint16_t*>(a.bfloat16);
  }
  std::uint16_t* part(int p) { return memory_.data() + p * block_rows * padded_; }

  /// Contiguous rows: pairs side by side, zeros behind the last number.
  void pack_rows(const MatrixView& a) {
    for (Index i = 0; i < a.rows; ++i)
      for (Index k = 0; k < a.cols; k += 32) {
        const Index at = i * padded_ + k;
        if (a.bfloat16 != nullptr) {
          const __mmask32 mask = first_of_32(a.cols - k);
          _mm512_storeu_si512(part(0) + at, _mm512_maskz_loadu_epi16(mask, words(a) + i * a.row_step + k));
          continue;
        }
        const float* from = a.data + i * a.row_step + k;
        __m512 x0 = _mm512_maskz_loadu_ps(first(a.cols - k), from);
        __m512 x1 = _mm512_maskz_loadu_ps(first(a.cols - k - 16), from + 16);
        for (int p = 0; p < parts_; ++p) _mm512_storeu_si512(part(p) + at, round_pair(x0, x1));
      }
  }

  /// Contiguous columns: the pairs of all rows side by side.
  void pack_columns(const MatrixView& a) {
    for (Index k = 0; k < a.cols; k += 2)
      for (Index i = 0; i < a.rows; i += 16) {
        const __mmask16 mask = first(a.rows - i), second = k + 1 < a.cols ? mask : 0;
        const Index from = k * a.col_step + i, at = k * block_rows + 2 * i;
        if (a.bfloat16 != nullptr) {
          const __m256i x0 = _mm256_maskz_loadu_epi16(mask, words(a) + from);
          const __m256i x1 = _mm256_maskz_loadu_epi16(second, words(a) + from + a.col_step);
          const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(x0), x1, 1);
          _mm512_storeu_si512(part(0) + at, alternating(both));
          continue;
        }
        __m512 x0 = _mm512_maskz_loadu_ps(mask, a.data + from);
        __m512 x1 = _mm512_maskz_loadu_ps(second, a.data + from + a.col_step);
        for (int p = 0; p < parts_; ++p) _mm512_storeu_si512(part(p) + at, alternating(round_pair(x0, x1)));
      }
  }

  Index padded_;
  int parts_;
  Array<std::uint16_t> memory_;
};

/// sums += `pairs` pairs of a times those of the columns of b, whose vectors are `strip` numbers apart. Row i
/// of a is found from the row before it whose number is a multiple of 3, so that few registers hold
/// addresses.
template <int rows, int vectors>
[[gnu::always_inline]] inline void add_pairs(const std::uint16_t* a, Index row_step, Index pair_step,
                                             const std::uint16_t* b, Index strip, Index pairs,
                                             __m512 (&sums)[rows][vectors]) {
  const std::uint16_t* left[(rows + 2) / 3];
  SAR_UNROLL
  for (int i = 0; i < rows; i += 3) left[i / 3] = a + i * row_step;
  for (; pairs > 0; --pairs) {
    __m512bh right[vectors];
    SAR_UNROLL
    for (int j = 0; j < vectors; ++j) right[j] = (__m512bh)_mm512_loadu_si512(b + j * strip);
    SAR_UNROLL
    for (int i = 0; i < rows; ++i) {
      std::int32_t pair = 0;
      __builtin_memcpy(&pair, left[i / 3] + i % 3 * row_step, sizeof pair);
      const auto factor = (__m512bh)_mm512_set1_epi32(pair);
      SAR_UNROLL
      for (int j = 0; j < vectors; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], factor, right[j]);
    }
    SAR_UNROLL
    for (int i = 0; i < rows; i += 3) left[i / 3] += pair_step;
    b += tile_depth;
  }
}

/// At most block_rows rows of a times one panel of b.
template <class Target>
struct PanelProduct {
  LeftPairs a;
  Index rows, depth;
  const std::uint16_t* b;
  Index strip;  ///< numbers between two vectors of the panel
  int parts;
  Index cols;  ///< columns of the panel, without the padding of its last vector
  Target target;
  OperandPrefetch* prefetches;  ///< one part per tile and depth tile

  /// Advances to the remaining rows.
  void skip_rows(Index count) {
    for (const std::uint16_t*& part : a.part)
      if (part != nullptr) part += count * a.row_step;
    target = part_of(target, count, 0);
    rows -= count;
  }
};

/// Computes one tile: the first `rows` rows of a times a panel of `vectors` vectors.
template <int rows, int vectors, class Target>
void tile(const PanelProduct<Target>& p) {
  const Index depth_tiles = (p.depth + tile_depth - 1) / tile_depth;
  __m512 sums[rows][vectors];
  SAR_UNROLL
  for (int i = 0; i < rows; ++i) {
    SAR_UNROLL
    for (int j = 0; j < vectors; ++j) sums[i][j] = _mm512_setzero_ps();
  }
  for (Index k = 0; k < depth_tiles; ++k) {
    p.prefetches->next_part();
    const Index pairs = std::min<Index>(tile_depth / 2, (p.depth - k * tile_depth + 1) / 2);
    const Index at = k * tile_depth / 2 * p.a.pair_step;
    const std::uint16_t* const b = p.b + k * p.parts * tile_numbers;
    for (int term = 0; term < (p.parts == 2 ? 3 : 1); ++term)  // h_a h_b, l_a h_b, h_a l_b
      add_pairs<rows, vectors>(p.a.part[term == 1] + at, p.a.row_step, p.a.pair_step,
                               b + (term == 2 ? tile_numbers : 0), p.strip, pairs, sums);
  }
  SAR_UNROLL
  for (int i = 0; i < rows; ++i) {
    SAR_UNROLL
    for (int j = 0; j < vectors; ++j) write_numbers(sums[i][j], i, 16 * j, p.cols, p.target);
  }
}

/// Computes all rows in tiles of `rows` rows, and the remaining rows in lower tiles.
template <int rows, int vectors, class Target>
void tiles(PanelProduct<Target> p) {
  for (; p.rows >= rows; p.skip_rows(rows)) tile<rows, vectors>(p);
  if constexpr (rows > 1) {
    constexpr int fewer = rows > 4 ? 4 : rows / 2;
    if (p.rows > 0) tiles<fewer, vectors>(p);
  }
}

/// Selects the tile width at compile time.
template <int vectors = most_vectors, class Target>
void multiply_panel(const PanelProduct<Target>& p, Index num_vectors) {
  if constexpr (vectors > 0) {
    if (num_vectors == vectors)
      tiles<tile_rows(vectors), vectors>(p);
    else
      multiply_panel<vectors - 1>(p, num_vectors);
  }
}

template <class Target>
void multiply_to(const MatrixView& a, const std::uint16_t* b, Index cols, int parts, const Target& target,
                 const ReadAhead& ahead) {
  if (a.rows == 0 || cols == 0) return;
  const Index depth_tiles = (a.cols + tile_depth - 1) / tile_depth;
  const Index strip = depth_tiles * parts * tile_numbers;
  const Index vectors = (cols + 15) / 16, panels = (vectors + most_vectors - 1) / most_vectors;
  const int rows_of_tile = tile_rows(static_cast<int>(vectors / panels));
  const auto prefetch_parts = [&](Index rows) {
    return (rows + rows_of_tile - 1) / rows_of_tile * panels * depth_tiles;
  };
  const bool by_rows = a.col_step == 1 && ahead.first.empty();
  OperandPrefetch prefetches(ahead, prefetch_parts(a.rows));
  const bool overwrites = static_cast<const void*>(a.bfloat16) == static_cast<const void*>(target.out);
  LeftBlock left(a.cols, parts);
  for (Index begin = 0; begin < a.rows; begin += block_rows) {
    const Index end = std::min(a.rows, begin + block_rows);
    if (by_rows) {  // what the next block reads and writes
      const ReadAhead next{rows_after(a, end, block_rows).first,
                           memory_of(target.out + end * target.stride, block_rows * target.stride)};
      prefetches = OperandPrefetch(next, prefetch_parts(end - begin));
    }
    const LeftPairs pairs = left.pairs(a.row_range(begin, end), !overwrites);
    for (Index panel = 0; panel < panels; ++panel) {
      const Index first = vectors * panel / panels, next = vectors * (panel + 1) / panels;
      multiply_panel(PanelProduct<Target>{.a = pairs,
                                          .rows = end - begin,
                                          .depth = a.cols,
                                          .b = b + first * strip,
                                          .strip = strip,
                                          .parts = parts,
                                          .cols = std::min(cols, 16 * next) - 16 * first,
                                          .target = part_of(target, begin, 16 * first),
                                          .prefetches = &prefetches},
                     next - first);
    }
  }
}

}  // namespace

void multiply_vectors(const MatrixView& a, const std::uint16_t* b, Index cols, int parts,
                      const ProductTarget& target, const ReadAhead& ahead) {
  multiply_to(a, b, cols, parts, target, ahead);
}
void multiply_vectors(const MatrixView& a, const std::uint16_t* b, Index cols, int parts,
                      const Bfloat16Target& target, const ReadAhead& ahead) {
  multiply_to(a, b, cols, parts, target, ahead);
}
}}  // namespace sar

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
