// SPDX-License-Identifier: MIT

/// Vectors of bfloat16 numbers: loads that widen them and stores that round, beside those of `real` in
/// lanes.hpp. For implementation files. Rounding is to nearest, ties to even; NaN stays NaN, and subnormal
/// numbers are kept, with every instruction set.
#pragma once

#include <sar/core/half.hpp>
#include <sar/core/simd/lanes.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

#if SAR_VECTOR_BYTES == 64 && !SAR_DOUBLE
#include <immintrin.h>
#endif

#include <sar/core/isa/isa_begin.hpp>

namespace lanes {

template <Index Lanes>
struct Bfloat16InMemory {
  typedef std::uint16_t type __attribute__((vector_size(Lanes * 2), aligned(2), may_alias));  // NOLINT
};
template <Index Lanes>
struct FloatsOf {
  typedef std::uint32_t words __attribute__((vector_size(Lanes * 4)));  // NOLINT: a dependent size
  typedef float floats __attribute__((vector_size(Lanes * 4)));         // NOLINT
};

template <Index Lanes = vector_lanes>
[[gnu::always_inline]] inline Vector<Lanes> load(const Bfloat16* from) {
#if SAR_VECTOR_BYTES == 64 && !SAR_DOUBLE
  if constexpr (Lanes == 16) {  // GCC 12 converts half vectors; a mask of ones, because it warns without
    const __m256i numbers = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const auto wide = (typename FloatsOf<16>::words)_mm512_maskz_cvtepu16_epi32(0xffff, numbers);
    return (Vector<Lanes>)(wide << 16);
  }
#endif
  const auto bits = *reinterpret_cast<const typename Bfloat16InMemory<Lanes>::type*>(from);
  const auto words = __builtin_convertvector(bits, typename FloatsOf<Lanes>::words) << 16;
  return __builtin_convertvector((typename FloatsOf<Lanes>::floats)words, Vector<Lanes>);
}

template <Index Lanes = vector_lanes>
[[gnu::always_inline]] inline void store(Bfloat16* to, const Vector<Lanes>& v) {
  const auto floats = __builtin_convertvector(v, typename FloatsOf<Lanes>::floats);
  const auto words = (typename FloatsOf<Lanes>::words)floats;
  const auto nearest = words + 0x7fffu + ((words >> 16) & 1u);
  const auto rounded = (floats == floats ? nearest : (words | 0x00400000u)) >> 16;
  using Bits = typename Bfloat16InMemory<Lanes>::type;
  *reinterpret_cast<Bits*>(to) = __builtin_convertvector(rounded, Bits);
}

/// One number, as a vector of one lane.
[[gnu::always_inline]] inline real number(real x) {
  return x;
}
[[gnu::always_inline]] inline real number(Bfloat16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}
/// A word whose upper half is the nearest bfloat16, ties to even; NaN stays NaN.
[[gnu::always_inline]] inline std::uint32_t rounded_word(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t nearest = word + 0x7fffu + ((word >> 16) & 1u);  // without a branch, for loops in lanes
  return x == x ? nearest : word | 0x00400000u;
}
[[gnu::always_inline]] inline void set_number(real& to, real x) {
  to = x;
}
[[gnu::always_inline]] inline void set_number(Bfloat16& to, real x) {
  to.bits = static_cast<std::uint16_t>(rounded_word(static_cast<float>(x)) >> 16);
}

}  // namespace lanes

#include <sar/core/isa/isa_end.hpp>
