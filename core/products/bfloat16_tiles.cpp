// Loop order of multiply_tiles(): blocks of 64 rows of a, converted to tiles in a buffer in the cache > 32
// columns of b > 32 rows of a > the depth in steps of 32. Innermost, the four tile registers 0 to 3 hold 32 x
// 32 sums, registers 4 and 5 two tiles of a, 6 and 7 two tiles of b. With two parts, a step multiplies l_a
// h_b, h_a h_b and h_a l_b. The AVX512-BF16 version keeps 8 rows x 2 vectors of sums in registers and
// broadcasts pairs of a.
//
// Bytes moved: from memory, a once and out once; the tiles of b once per 64 rows of a, from the L2 cache.
#include <sar/core/products/bfloat16_tiles.hpp>

#if defined(__x86_64__) && !SAR_DOUBLE  // has_bfloat16_tiles

#include <immintrin.h>

#include <algorithm>
#include <type_traits>

// Enables the instructions for this file, but not for the headers included above.
#if defined(__clang__)
#pragma clang attribute push(                                                                   \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16,prefer-vector-width=512")
#endif

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index tile_rows = 16;
constexpr Index tile_depth = 32;
constexpr Index tile_numbers = tile_rows * tile_depth;
constexpr Index block_rows = 64;  // rows of a converted at a time

/// The tile intrinsics do not tell the compiler that they access memory.
void memory_barrier() {
  asm volatile("" ::: "memory");
}

/// For each part, 16 vectors of 16 pairs.
struct Pairs {
  __m512i part[2][16];
};

/// Returns a mask with the lowest `count` bits set.
__mmask16 first(Index count) {
  return static_cast<__mmask16>((1u << std::clamp<Index>(count, 0, 16)) - 1);
}

__mmask32 first_of_32(Index count) {
  return count >= 32 ? ~__mmask32{0} : static_cast<__mmask32>((1u << std::max<Index>(count, 0)) - 1);
}

/// Returns the numbers of two vectors of bfloat16, which lie one after the other, by turns.
__m512i alternating(__m512i two) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, two);
}

/// Returns x rounded to bfloat16 as core/simd/bfloat16_lanes.hpp does: subnormal numbers are kept.
__m256i narrowed(__m512 x) {
  const __m512i word = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(word, 16), _mm512_set1_epi32(1));
  const __m512i nearest = _mm512_add_epi32(word, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(word, _mm512_set1_epi32(0x00400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(nearest, nan, quiet), 16));
}

__m512 widened(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/// Returns two vectors rounded to bfloat16, one after the other, and leaves the remainders in x0 and x1.
__m512i round_pair(__m512& x0, __m512& x1) {
  const __m512i rounded = (__m512i)_mm512_cvtne2ps_pbh(x1, x0);
  x0 = _mm512_sub_ps(x0, widened(_mm512_castsi512_si256(rounded)));
  x1 = _mm512_sub_ps(x1, widened(_mm512_extracti64x4_epi64(rounded, 1)));
  return rounded;
}

/// For contiguous rows of bfloat16 numbers: their memory has pairs side by side.
void pairs_of_bfloat16_rows(const MatrixView& x, Pairs& to) {
  const __mmask32 mask = first_of_32(x.cols);
  for (Index r = 0; r < tile_rows; ++r)
    to.part[0][r] = _mm512_maskz_loadu_epi16(r < x.rows ? mask : 0, x.bfloat16 + r * x.row_step);
}

/// For contiguous columns of bfloat16 numbers.
void pairs_of_bfloat16_columns(const MatrixView& x, Pairs& to) {
  const __mmask16 mask = first(x.rows);
  for (Index p = 0; p < tile_depth / 2; ++p) {
    const Bfloat16* column = x.bfloat16 + 2 * p * x.col_step;
    const __m256i x0 = _mm256_maskz_loadu_epi16(2 * p < x.cols ? mask : 0, column);
    const __m256i x1 = _mm256_maskz_loadu_epi16(2 * p + 1 < x.cols ? mask : 0, column + x.col_step);
    to.part[0][p] = alternating(_mm512_inserti64x4(_mm512_castsi256_si512(x0), x1, 1));
  }
}

/// For contiguous rows: vector r contains the pairs of row r.
void pairs_of_rows(const MatrixView& x, int parts, Pairs& to) {
  const __mmask16 mask0 = first(x.cols), mask1 = first(x.cols - 16);
  for (Index r = 0; r < tile_rows; ++r) {
    const float* row = x.data + r * x.row_step;
    const bool there = r < x.rows;
    __m512 x0 = _mm512_maskz_loadu_ps(there ? mask0 : 0, row);
    __m512 x1 = _mm512_maskz_loadu_ps(there ? mask1 : 0, row + 16);
    for (int part = 0; part < parts; ++part) to.part[part][r] = round_pair(x0, x1);
  }
}

/// For contiguous columns: vector p contains the pairs of columns 2p and 2p + 1.
void pairs_of_columns(const MatrixView& x, int parts, Pairs& to) {
  const __mmask16 mask = first(x.rows);
  for (Index p = 0; p < tile_depth / 2; ++p) {
    const float* column = x.data + 2 * p * x.col_step;
    __m512 x0 = _mm512_maskz_loadu_ps(2 * p < x.cols ? mask : 0, column);
    __m512 x1 = _mm512_maskz_loadu_ps(2 * p + 1 < x.cols ? mask : 0, column + x.col_step);
    for (int part = 0; part < parts; ++part) to.part[part][p] = alternating(round_pair(x0, x1));
  }
}

/// Transposes 16 x 16 elements of 32 bits: element j of vector i becomes element i of vector j.
void transpose(__m512i (&v)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int c = 0; c < 4; ++c) {  // 128 bits of v[4 g + c] are elements 4 g .. 4 g + 3 of a result
    const __m512i even0 = _mm512_shuffle_i32x4(v[c], v[4 + c], 0x88);
    const __m512i odd0 = _mm512_shuffle_i32x4(v[c], v[4 + c], 0xdd);
    const __m512i even1 = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0x88);
    const __m512i odd1 = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0xdd);
    t[c] = _mm512_shuffle_i32x4(even0, even1, 0x88);
    t[4 + c] = _mm512_shuffle_i32x4(odd0, odd1, 0x88);
    t[8 + c] = _mm512_shuffle_i32x4(even0, even1, 0xdd);
    t[12 + c] = _mm512_shuffle_i32x4(odd0, odd1, 0xdd);
  }
  for (int i = 0; i < 16; ++i) v[i] = t[i];
}

/// Packs x [rows, depth] into tiles: 16 rows along the whole depth, then the next 16 rows.
void pack_tiles(const MatrixView& x, int parts, bool right, std::uint16_t* to) {
  Pairs pairs;
  for (Index r = 0; r < x.rows; r += tile_rows)
    for (Index k = 0; k < x.cols; k += tile_depth) {
      const MatrixView block =
          x.row_range(r, std::min(x.rows, r + tile_rows)).column_range(k, std::min(x.cols, k + tile_depth));
      if (x.bfloat16 != nullptr)
        x.col_step == 1 ? pairs_of_bfloat16_rows(block, pairs) : pairs_of_bfloat16_columns(block, pairs);
      else if (x.col_step == 1)
        pairs_of_rows(block, parts, pairs);
      else
        pairs_of_columns(block, parts, pairs);
      for (int part = 0; part < parts; ++part) {
        if ((x.col_step == 1) == right) transpose(pairs.part[part]);
        for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + 32 * i, pairs.part[part][i]);
        to += tile_numbers;
      }
    }
}

/// The product of 16 or 32 rows of a with 16 or 32 columns of b along the whole depth.
struct TileProduct {
  const std::uint16_t *a0, *a1, *b0, *b1;
  Index depth_tiles;
  int parts;
  OperandPrefetch* prefetches;  ///< one part per tile of the depth
  const char* target;           ///< destination of the sums
  Index target_stride;          ///< in bytes
  Index target_bytes;           ///< of a row
  Index rows, cols;

  /// Prefetches what is read after this product, and the share of the destination that belongs to depth tile
  /// k.
  void prefetch(Index k) const {
    prefetches->next_part();
    for (Index i = rows * k / depth_tiles; i < rows * (k + 1) / depth_tiles; ++i)
      prefetch_lines<1, 3>(target + i * target_stride, target_bytes);
  }
};

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
const TileConfig all_tiles;

/// sums (registers 0 to 3) += tiles of a (4, 5) times tiles of b (6, 7)
template <bool two_rows, bool two_cols>
void add_tiles() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (two_cols) _tile_dpbf16ps(1, 4, 7);
  if constexpr (two_rows) _tile_dpbf16ps(2, 5, 6);
  if constexpr (two_rows && two_cols) _tile_dpbf16ps(3, 5, 7);
}

/// Computes the sums of a block of up to 2 x 2 tiles; row i is written to out + i * stride.
template <bool two_rows, bool two_cols>
void amx_block(const TileProduct& p, float* out, Index stride) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (Index k = 0; k < p.depth_tiles; ++k) {
    const Index high = k * p.parts * tile_numbers, low = high + tile_numbers;
    p.prefetch(k);
    _tile_loadd(6, p.b0 + high, 64);
    if constexpr (two_cols) _tile_loadd(7, p.b1 + high, 64);
    if (p.parts == 2) {
      _tile_loadd(4, p.a0 + low, 64);
      if constexpr (two_rows) _tile_loadd(5, p.a1 + low, 64);
      add_tiles<two_rows, two_cols>();
    }
    _tile_loadd(4, p.a0 + high, 64);
    if constexpr (two_rows) _tile_loadd(5, p.a1 + high, 64);
    add_tiles<two_rows, two_cols>();
    if (p.parts == 2) {
      _tile_loadd(6, p.b0 + low, 64);
      if constexpr (two_cols) _tile_loadd(7, p.b1 + low, 64);
      add_tiles<two_rows, two_cols>();
    }
  }
  const Index bytes = stride * static_cast<Index>(sizeof(float));
  _tile_stored(0, out, bytes);
  if constexpr (two_cols) _tile_stored(1, out + 16, bytes);
  if constexpr (two_rows) _tile_stored(2, out + 16 * stride, bytes);
  if constexpr (two_rows && two_cols) _tile_stored(3, out + 16 * stride + 16, bytes);
}

/// sums += a times b0 and b1 for rows `first_row` to `first_row` + 8 of a tile of a
template <int cols>
void add_vectors(const std::uint16_t* a, const std::uint16_t* b0, const std::uint16_t* b1,
                 __m512 (&sums)[8][cols]) {
  for (Index pair = 0; pair < tile_depth / 2; ++pair) {
    const auto right0 = (__m512bh)_mm512_loadu_si512(b0 + 32 * pair);
    const auto right1 = (__m512bh)_mm512_loadu_si512((cols == 2 ? b1 : b0) + 32 * pair);
    for (int i = 0; i < 8; ++i) {
      std::int32_t left = 0;
      __builtin_memcpy(&left, a + 32 * i + 2 * pair, sizeof left);
      const auto factor = (__m512bh)_mm512_set1_epi32(left);
      sums[i][0] = _mm512_dpbf16_ps(sums[i][0], factor, right0);
      if constexpr (cols == 2) sums[i][1] = _mm512_dpbf16_ps(sums[i][1], factor, right1);
    }
  }
}

/// The same as amx_block with AVX512-BF16, 8 rows at a time.
template <bool two_rows, bool two_cols>
void avx512_block(const TileProduct& p, float* out, Index stride) {
  constexpr int cols = two_cols ? 2 : 1;
  for (int i = 0; i < (two_rows ? 32 : 16); i += 8) {
    const std::uint16_t* a = (i < 16 ? p.a0 : p.a1) + i % 16 * 32;
    __m512 sums[8][cols];
    for (auto& row : sums)
      for (__m512& sum : row) sum = _mm512_setzero_ps();
    for (Index k = 0; k < p.depth_tiles; ++k) {
      const Index high = k * p.parts * tile_numbers, low = high + tile_numbers;
      if (i == 0) p.prefetch(k);
      if (p.parts == 2) {
        add_vectors(a + low, p.b0 + high, p.b1 + high, sums);
        add_vectors(a + high, p.b0 + low, p.b1 + low, sums);
      }
      add_vectors(a + high, p.b0 + high, p.b1 + high, sums);
    }
    for (int r = 0; r < 8; ++r)
      for (int c = 0; c < cols; ++c) _mm512_storeu_ps(out + (i + r) * stride + 16 * c, sums[r][c]);
  }
}

using Block = void (*)(const TileProduct&, float*, Index);
constexpr Block blocks[2][2][2] = {
    {{avx512_block<false, false>, avx512_block<false, true>},
     {avx512_block<true, false>, avx512_block<true, true>}},
    {{amx_block<false, false>, amx_block<false, true>}, {amx_block<true, false>, amx_block<true, true>}}};

/// Adds the addend to the sums of a block [rows, cols] and writes the result.
void write_block(const float* sums, Index rows, Index cols, const ProductTarget& target) {
  for (Index i = 0; i < rows; ++i) {
    const float* start = target.start == nullptr ? nullptr : target.start + i * target.start_stride;
    float* out = target.out + i * target.stride;
    for (Index j = 0; j < cols; j += 16) {
      const __mmask16 mask = first(cols - j);
      __m512 sum = _mm512_load_ps(sums + i * 32 + j);
      if (start != nullptr) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, start + j));
      _mm512_mask_storeu_ps(out + j, mask, sum);
    }
  }
}

void write_block(const float* sums, Index rows, Index cols, const Bfloat16Target& target) {
  for (Index i = 0; i < rows; ++i) {
    Bfloat16* out = target.out + i * target.stride;
    for (Index j = 0; j < cols; j += 16) {
      const __mmask16 mask = first(cols - j);
      __m512 sum = _mm512_load_ps(sums + i * 32 + j);
      if (target.start != nullptr) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, target.start + j));
      if (target.accumulate) sum = _mm512_add_ps(widened(_mm256_maskz_loadu_epi16(mask, out + j)), sum);
      _mm256_mask_storeu_epi16(out + j, mask, narrowed(sum));
    }
  }
}

// The part of a target from row i and column j on.
ProductTarget part_of(const ProductTarget& t, Index i, Index j) {
  return {t.out + i * t.stride + j, t.stride, t.start == nullptr ? nullptr : t.start + i * t.start_stride + j,
          t.start_stride};
}
Bfloat16Target part_of(const Bfloat16Target& t, Index i, Index j) {
  return {t.out + i * t.stride + j, t.stride, t.start == nullptr ? nullptr : t.start + j, t.accumulate};
}

/// Multiplies up to 32 rows of a with up to 32 columns of b.
template <class Target>
void multiply_block(const TileProduct& p, bool amx, float* sums, const Target& target) {
  const Block block = blocks[amx][p.rows > tile_rows][p.cols > tile_rows];
  if constexpr (std::is_same_v<Target, ProductTarget>)
    if (p.rows == 2 * tile_rows && p.cols == 2 * tile_rows && target.start == nullptr)
      return block(p, target.out, target.stride);
  block(p, sums, 2 * tile_rows);
  memory_barrier();
  write_block(sums, p.rows, p.cols, target);
}

template <class Target>
void multiply_all(const MatrixView& a, const std::uint16_t* b, Index cols, int parts, bool amx,
                  const Target& target, const ReadAhead& ahead) {
  constexpr auto number_bytes = static_cast<Index>(sizeof(*target.out));
  const Index depth_tiles = (a.cols + tile_depth - 1) / tile_depth,
              strip = depth_tiles * parts * tile_numbers;
  Array<std::uint16_t> left(static_cast<std::size_t>(block_rows / tile_rows * strip));
  Array<float> sums(4 * tile_rows * tile_rows);
  const auto prefetch_parts = [&](Index rows) {
    return (rows + 2 * tile_rows - 1) / (2 * tile_rows) * ((cols + 2 * tile_rows - 1) / (2 * tile_rows)) *
           depth_tiles;
  };
  OperandPrefetch prefetches(ahead, prefetch_parts(a.rows));
  const bool prefetches_a = a.col_step == 1 && ahead.first.empty();
  if (amx) _tile_loadconfig(&all_tiles);
  for (Index begin = 0; begin < a.rows; begin += block_rows) {
    const Index end = std::min(a.rows, begin + block_rows);
    if (prefetches_a)
      prefetches = OperandPrefetch(rows_after(a, end, block_rows), prefetch_parts(end - begin));
    pack_tiles(a.row_range(begin, end), parts, false, left.data());
    memory_barrier();
    for (Index j = 0; j < cols; j += 2 * tile_rows)
      for (Index i = begin; i < end; i += 2 * tile_rows) {
        const std::uint16_t *left_tiles = left.data() + (i - begin) / tile_rows * strip,
                            *right_tiles = b + j / tile_rows * strip;
        const Target part = part_of(target, i, j);
        const Index block_cols = std::min<Index>(cols - j, 2 * tile_rows);
        const TileProduct p{.a0 = left_tiles,
                            .a1 = left_tiles + strip,
                            .b0 = right_tiles,
                            .b1 = right_tiles + strip,
                            .depth_tiles = depth_tiles,
                            .parts = parts,
                            .prefetches = &prefetches,
                            .target = reinterpret_cast<const char*>(part.out),
                            .target_stride = target.stride * number_bytes,
                            .target_bytes = block_cols * number_bytes,
                            .rows = std::min<Index>(end - i, 2 * tile_rows),
                            .cols = block_cols};
        multiply_block(p, amx, sums.data(), part);
      }
  }
  memory_barrier();
  if (amx) _tile_release();
}

}  // namespace

void pack_right_tiles(const MatrixView& b, int parts, std::uint16_t* to) {
  pack_tiles(b.transposed(), parts, true, to);
}

void multiply_tiles(const MatrixView& a, const std::uint16_t* b, Index cols, int parts, bool amx,
                    const ProductTarget& target, const ReadAhead& ahead) {
  multiply_all(a, b, cols, parts, amx, target, ahead);
}

void multiply_tiles(const MatrixView& a, const std::uint16_t* b, Index cols, bool amx,
                    const Bfloat16Target& target, const ReadAhead& ahead) {
  multiply_all(a, b, cols, 1, amx, target, ahead);
}
}}  // namespace sar

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
