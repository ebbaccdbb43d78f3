// SPDX-License-Identifier: MIT

/// Vectors of numbers: types, loads and stores, sums of lanes. For implementation files.
///
/// Room core/simd: Vector registers for kernels: rows in lanes, exponentials, prefetches. Only implementation
/// files include it.
#pragma once

#include <sar/config.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

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
