// SPDX-License-Identifier: MIT

// Loop order of multiply_tiles(): blocks of 64 rows of a, converted to tiles in a buffer in the cache > 32
// columns of b > 32 rows of a > the depth in steps of 32. Innermost, the four tile registers 0 to 3 hold 32 x
// 32 sums, registers 4 and 5 two tiles of a, 6 and 7 two tiles of b. With two parts, a step multiplies l_a
// h_b, h_a h_b and h_a l_b.
//
// Bytes moved: from memory, a once and out once; the tiles of b once per 64 rows of a, from the L2 cache.
#include <sar/core/products/bfloat16_registers.hpp>
#include <sar/core/products/bfloat16_tiles.hpp>

#if defined(__x86_64__) && !SAR_DOUBLE  // has_bfloat16_tiles

#include <immintrin.h>

#include <algorithm>
#include <type_traits>

#if defined(SAR_MEMORY_SANITIZER)
#include <sanitizer/msan_interface.h>
#endif

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

using namespace bfloat16_registers;

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
#if defined(SAR_MEMORY_SANITIZER)  // it does not see what tiles write
  for (Index row = 0; row < (two_rows ? 32 : 16); ++row)
    __msan_unpoison(out + row * stride, sizeof(float) * (two_cols ? 32 : 16));
#endif
}

using Block = void (*)(const TileProduct&, float*, Index);
constexpr Block blocks[2][2] = {{amx_block<false, false>, amx_block<false, true>},
                                {amx_block<true, false>, amx_block<true, true>}};

/// Adds the addend to the sums of a block [rows, cols] and writes the result.
template <class Target>
void write_block(const float* sums, Index rows, Index cols, const Target& target) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; j += 16)
      write_numbers(_mm512_load_ps(sums + i * 2 * tile_rows + j), i, j, cols, target);
}

/// Multiplies up to 32 rows of a with up to 32 columns of b.
template <class Target>
void multiply_block(const TileProduct& p, float* sums, const Target& target) {
  const Block block = blocks[p.rows > tile_rows][p.cols > tile_rows];
  if constexpr (std::is_same_v<Target, ProductTarget>)
    if (p.rows == 2 * tile_rows && p.cols == 2 * tile_rows && target.start == nullptr)
      return block(p, target.out, target.stride);
  block(p, sums, 2 * tile_rows);
  memory_barrier();
  write_block(sums, p.rows, p.cols, target);
}

template <class Target>
void multiply_to(const MatrixView& a, const std::uint16_t* b, Index cols, int parts, const Target& target,
                 const ReadAhead& ahead) {
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
  _tile_loadconfig(&all_tiles);
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
        multiply_block(p, sums.data(), part);
      }
  }
  memory_barrier();
  _tile_release();
}

}  // namespace

void pack_right_tiles(const MatrixView& b, int parts, std::uint16_t* to) {
  pack_tiles(b.transposed(), parts, true, to);
}

void multiply_tiles(const MatrixView& a, const std::uint16_t* b, Index cols, int parts,
                    const ProductTarget& target, const ReadAhead& ahead) {
  multiply_to(a, b, cols, parts, target, ahead);
}
void multiply_tiles(const MatrixView& a, const std::uint16_t* b, Index cols, int parts,
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
