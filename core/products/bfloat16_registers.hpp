// SPDX-License-Identifier: MIT

/// Registers of bfloat16 numbers in products of them: pairs, rounding, and the rows of a result. For the
/// implementation files of products with AVX512-BF16 and AMX. Functions are static: of an inline function
/// that several files compile, a linker keeps one copy, which other files might then call.
#pragma once

#include <sar/core/products/product.hpp>

#if defined(__x86_64__) && !SAR_DOUBLE

#include <immintrin.h>

#include <algorithm>

// Enables the instructions for what follows, but not for the headers included above.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,prefer-vector-width=512")
#endif

namespace sar { inline namespace SAR_PRECISION {
namespace bfloat16_registers {

/// Returns a mask with the lowest `count` bits set.
static inline __mmask16 first(Index count) {
  return static_cast<__mmask16>((1u << std::clamp<Index>(count, 0, 16)) - 1);
}

static inline __mmask32 first_of_32(Index count) {
  return count >= 32 ? ~__mmask32{0} : static_cast<__mmask32>((1u << std::max<Index>(count, 0)) - 1);
}

/// Returns the numbers of two vectors of bfloat16, which lie one after the other, by turns.
static inline __m512i alternating(__m512i two) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, two);
}

static inline __m512 widened(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/// Returns two vectors rounded to bfloat16, one after the other, and leaves the remainders in x0 and x1.
static inline __m512i round_pair(__m512& x0, __m512& x1) {
  const __m512i rounded = (__m512i)_mm512_cvtne2ps_pbh(x1, x0);
  x0 = _mm512_sub_ps(x0, widened(_mm512_castsi512_si256(rounded)));
  x1 = _mm512_sub_ps(x1, widened(_mm512_extracti64x4_epi64(rounded, 1)));
  return rounded;
}

/// Returns x rounded to bfloat16 as core/simd/lanes.hpp does: subnormal numbers are kept, which the
/// instruction for it takes as 0.
static inline __m256i narrowed(__m512 x) {
  constexpr int subnormal = 0x20;
  if (_mm512_fpclass_ps_mask(x, subnormal) == 0) [[likely]]
    return (__m256i)_mm512_cvtneps_pbh(x);
  const __m512i word = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(word, 16), _mm512_set1_epi32(1));
  const __m512i nearest = _mm512_add_epi32(word, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(word, _mm512_set1_epi32(0x00400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(nearest, nan, quiet), 16));
}

/// Adds the addend to `sum`, numbers [column, column + 16) of a row, of which the last one is number
/// cols - 1, and writes them to row i of the target.
[[gnu::always_inline]] inline void write_numbers(__m512 sum, Index i, Index column, Index cols,
                                                 const ProductTarget& target) {
  const __mmask16 mask = first(cols - column);
  if (target.start != nullptr)
    sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, target.start + i * target.start_stride + column));
  _mm512_mask_storeu_ps(target.out + i * target.stride + column, mask, sum);
}

[[gnu::always_inline]] inline void write_numbers(__m512 sum, Index i, Index column, Index cols,
                                                 const Bfloat16Target& target) {
  const __mmask16 mask = first(cols - column);
  Bfloat16* const out = target.out + i * target.stride + column;
  if (target.start != nullptr) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, target.start + column));
  if (target.accumulate) sum = _mm512_add_ps(widened(_mm256_maskz_loadu_epi16(mask, out)), sum);
  _mm256_mask_storeu_epi16(out, mask, narrowed(sum));
}

/// The part of a target from row i and column j on.
static inline ProductTarget part_of(const ProductTarget& t, Index i, Index j) {
  return {t.out + i * t.stride + j, t.stride, t.start == nullptr ? nullptr : t.start + i * t.start_stride + j,
          t.start_stride};
}
static inline Bfloat16Target part_of(const Bfloat16Target& t, Index i, Index j) {
  return {t.out + i * t.stride + j, t.stride, t.start == nullptr ? nullptr : t.start + j, t.accumulate};
}

}  // namespace bfloat16_registers
}}  // namespace sar

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
