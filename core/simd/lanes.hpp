// SPDX-License-Identifier: MIT

/// Vectors of numbers, of `real` and bfloat16: types, loads and stores, sums of lanes. For implementation
/// files.
///
/// Room core/simd: Vector registers for kernels: rows in lanes, exponentials, prefetches. Only implementation
/// files include it.
#pragma once

#include <sar/config.hpp>
#include <sar/core/numbers.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <sar/core/isa/isa_begin.hpp>

namespace lanes {

inline constexpr Index vector_bytes = SAR_VECTOR_BYTES;
inline constexpr Index vector_lanes = vector_bytes / static_cast<Index>(sizeof(real));

template <Index Lanes>
struct VectorOf {
  typedef real type __attribute__((vector_size(Lanes * sizeof(real))));  // NOLINT: a dependent size
};

template <Index Lanes = vector_lanes>
using Vector = typename VectorOf<Lanes>::type;

/// A vector anywhere in memory. Stores of it change numbers only: after a memcpy, the compiler would read
/// every size and pointer again.
template <Index Lanes>
struct VectorInMemory {
  typedef real type __attribute__((vector_size(Lanes * sizeof(real)), aligned(sizeof(real))));  // NOLINT
};

template <Index Lanes = vector_lanes>
[[gnu::always_inline]] inline Vector<Lanes> load(const real* from) {
  return *reinterpret_cast<const typename VectorInMemory<Lanes>::type*>(from);
}

template <Index Lanes = vector_lanes>
[[gnu::always_inline]] inline void store(real* to, const Vector<Lanes>& v) {
  *reinterpret_cast<typename VectorInMemory<Lanes>::type*>(to) = v;
}

/// The result of comparing two vectors: a lane is -1 where the comparison is true, and 0 elsewhere. The lanes
/// are integers as wide as those of the vectors, and also hold indices that are chosen by such results.
template <Index Lanes>
using Mask = decltype(Vector<Lanes>{} > Vector<Lanes>{});

template <Index Lanes>
struct IndicesOf {
  typedef std::int32_t type __attribute__((vector_size(Lanes * sizeof(std::int32_t))));  // NOLINT
  typedef std::int32_t in_memory
      __attribute__((vector_size(Lanes * sizeof(std::int32_t)), aligned(sizeof(std::int32_t))));  // NOLINT
};

template <Index Lanes>
[[gnu::always_inline]] inline Mask<Lanes> load_indices(const std::int32_t* from) {
  const typename IndicesOf<Lanes>::type v =
      *reinterpret_cast<const typename IndicesOf<Lanes>::in_memory*>(from);
  return __builtin_convertvector(v, Mask<Lanes>);
}

template <Index Lanes>
[[gnu::always_inline]] inline void store_indices(std::int32_t* to, const Mask<Lanes>& indices) {
  *reinterpret_cast<typename IndicesOf<Lanes>::in_memory*>(to) =
      __builtin_convertvector(indices, typename IndicesOf<Lanes>::type);
}

/// Lanes of two vectors, or of one, whose groups of `group` lanes are to be added up: half of a group is
/// added to the other half.
template <Index Lanes, Index Out, Index group, std::size_t... I>
[[gnu::always_inline]] inline Vector<Out> folded(const Vector<Lanes>& a, const Vector<Lanes>& b,
                                                 std::index_sequence<I...>) {
  constexpr Index half = group / 2;
  return __builtin_shufflevector(a, b, static_cast<int>(I / half * group + I % half)...) +
         __builtin_shufflevector(a, b, static_cast<int>(I / half * group + I % half + half)...);
}

/// The sums of G groups of neighboring lanes.
template <Index G, Index Lanes>
[[gnu::always_inline]] inline Vector<G> lanes_folded(const Vector<Lanes>& v) {
  if constexpr (Lanes == G)
    return v;
  else
    return lanes_folded<G, Lanes / 2>(folded<Lanes, Lanes / 2, Lanes / G>(
        v, v, std::make_index_sequence<static_cast<std::size_t>(Lanes / 2)>()));
}

/// A vector of numbers or a mask of L lanes, repeated: doubled in registers step by step, because GCC 12 goes
/// through memory in one step.
template <Index Lanes, Index L, class V>
[[gnu::always_inline]] inline auto repeated(const V& v) {
  if constexpr (L == Lanes) {
    return v;
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
      return repeated<Lanes, 2 * L>(__builtin_shufflevector(v, v, static_cast<int>(I)...));
    }
    (std::make_index_sequence<static_cast<std::size_t>(2 * L)>());
  }
}

/// The groups of L neighboring lanes of a vector or a mask, combined into one.
template <Index L, Index Lanes, class V, class Combine>
[[gnu::always_inline]] inline auto groups_combined(const V& v, const Combine& combine) {
  if constexpr (L == Lanes) {
    return v;
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
      return groups_combined<L, Lanes / 2>(
          combine(__builtin_shufflevector(v, v, static_cast<int>(I)...),
                  __builtin_shufflevector(v, v, static_cast<int>(I + Lanes / 2)...)),
          combine);
    }
    (std::make_index_sequence<static_cast<std::size_t>(Lanes / 2)>());
  }
}

/// visit(constant lanes, at): the numbers at .. at + lanes - 1 of first .. last - 1, by vectors, then one by
/// one.
template <class Visit>
[[gnu::always_inline]] inline void for_lanes(Index first, Index last, const Visit& visit) {
  Index at = first;
  for (; at + vector_lanes <= last; at += vector_lanes)
    visit(std::integral_constant<Index, vector_lanes>(), at);
  for (; at < last; ++at) visit(std::integral_constant<Index, 1>(), at);
}

/// visit(constant lanes, at): the numbers at .. at + lanes - 1 for all of n rows of L numbers that lie
/// `stride` apart; those of several rows at once where rows lie side by side.
template <Index L, class Visit>
[[gnu::always_inline]] inline void for_lanes_of_rows(Index n, Index stride, const Visit& visit) {
  constexpr Index at_once = vector_lanes / L;
  Index i = 0;
  if (at_once > 1 && stride == L)
    for (; i + at_once <= n; i += at_once) visit(std::integral_constant<Index, vector_lanes>(), i * L);
  for (; i < n; ++i) visit(std::integral_constant<Index, L>(), i * stride);
}

/// combine over the rows of row(constant lanes, at), beginning with `first`; numbers as above.
template <Index L, class Row, class Combine>
[[gnu::always_inline]] inline Vector<L> rows_combined(Index n, Index stride, const Vector<L>& first,
                                                      const Row& row, const Combine& combine) {
  auto narrow = first;
  auto wide = repeated<vector_lanes, L>(first);
  for_lanes_of_rows<L>(n, stride, [&](auto lanes, Index at) {
    if constexpr (lanes == L)
      narrow = combine(narrow, row(lanes, at));
    else
      wide = combine(wide, row(lanes, at));
  });
  if constexpr (vector_lanes == L) return narrow;
  return combine(narrow, groups_combined<L, vector_lanes>(wide, combine));
}

/// The sum over the rows of row(constant lanes, at).
template <Index L, class Row>
[[gnu::always_inline]] inline Vector<L> sum_of_rows(Index n, Index stride, const Row& row) {
  return rows_combined<L>(n, stride, Vector<L>{}, row, [](const auto& x, const auto& y) { return x + y; });
}

/// The sums of the lanes of each of G vectors, by halves: pairs of vectors become one until one is left.
template <Index G, Index Lanes>
[[gnu::always_inline]] inline Vector<G> lane_sums(const Vector<Lanes>* v) {
  static_assert(G <= Lanes && vector_lanes % G == 0);
  if constexpr (Lanes == 1) {
    return *v;
  } else {
    Vector<Lanes> left[G];
    for (Index g = 0; g < G; ++g) left[g] = v[g];
    const auto pairs = [&](auto self, auto count) __attribute__((always_inline))->Vector<G> {
      constexpr Index n = decltype(count)::value;
      constexpr Index group = Lanes * n / G;  // lanes that belong to one sum
      if constexpr (n > 1) {
        for (Index i = 0; i < n / 2; ++i)
          left[i] = folded<Lanes, Lanes, group>(left[2 * i], left[2 * i + 1],
                                                std::make_index_sequence<static_cast<std::size_t>(Lanes)>());
        return self(self, std::integral_constant<Index, n / 2>());
      } else {
        return lanes_folded<G, Lanes>(left[0]);
      }
    };
    return pairs(pairs, std::integral_constant<Index, G>());
  }
}

/// Numbers in a cache line, and a vector of them: as many with every instruction set, so that sums over the
/// lanes of lines have the same bits.
inline constexpr Index line_lanes = 64 / static_cast<Index>(sizeof(real));
using Line = Vector<line_lanes>;

/// Returns the last `count` lanes of v, and `other` in the lanes before them.
inline Line last_lanes(const Line& v, Index count, const Line& other) {
  using Flag = std::remove_cvref_t<decltype(Mask<line_lanes>{}[0])>;
  static constexpr auto flags = [] {
    struct {
      Flag of[2 * line_lanes];
    } all{};
    for (Index l = line_lanes; l < 2 * line_lanes; ++l) all.of[l] = -1;
    return all;
  }();
  Mask<line_lanes> mask;
  std::memcpy(&mask, flags.of + count, sizeof mask);
  return mask ? v : other;
}

/// visit(constant L, h): numbers of heads h .. h + L - 1, for all heads.
template <class Visit>
inline void for_head_lanes(Index heads, const Visit& visit) {
  const auto run = [&](auto lanes) {
    for (Index h = 0; h < heads; h += lanes) visit(lanes, h);
  };
  const auto choose = [&](auto self, auto lanes) -> void {
    constexpr Index L = decltype(lanes)::value;
    if constexpr (L == 1) {
      run(lanes);
    } else {
      if (heads % L == 0) return run(lanes);
      self(self, std::integral_constant<Index, L / 2>());
    }
  };
  choose(choose, std::integral_constant<Index, vector_lanes>());
}

}  // namespace lanes

#include <sar/core/isa/isa_end.hpp>

// Vectors of bfloat16 numbers: loads that widen them and stores that round, beside those of `real` in
// lanes.hpp. For implementation files. Rounding is to nearest, ties to even; NaN stays NaN, and subnormal
// numbers are kept, with every instruction set.

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
