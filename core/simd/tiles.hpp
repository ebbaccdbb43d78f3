// SPDX-License-Identifier: MIT

/// Tiles: columns of several heads of a row in registers, for kernels that combine a row with many others.
/// For implementation files.
#pragma once

#include <sar/core/simd/lanes.hpp>

#include <algorithm>

#include <sar/core/isa/isa_begin.hpp>

namespace lanes {

/// Signs of up to 8 vectors: a bit each. That of lane l of vector i is bit 8 (l / words) + i of word l %
/// words.
template <Index Lanes>
struct Signs {
  static constexpr Index words = std::max<Index>(Lanes / static_cast<Index>(sizeof(real)), 1);
  using Words = Mask<words>;

  /// Returns a mask that has the bits of vector i set in all lanes.
  [[gnu::always_inline]] static Mask<Lanes> bits(Index i) {
    using Lane = std::remove_reference_t<decltype(Mask<Lanes>{}[0])>;
    const auto bit = [&](Index l) { return static_cast<Lane>(std::uint64_t{1} << (l / words * 8 + i)); };
    if constexpr (Lanes == 1)
      return Mask<1>{bit(0)};  // GCC 12 takes an assigned lane for one that is not set
    Mask<Lanes> all{};
    for (Index l = 0; l < Lanes; ++l) all[l] = bit(l);
    return all;
  }
  /// Writes the words that the lanes have collected.
  [[gnu::always_inline]] static void save(const Mask<Lanes>& lanes, real* to) {
    const Words v = groups_combined<words, Lanes>(lanes, [](const auto& x, const auto& y) { return x | y; });
    std::memcpy(to, &v, sizeof v);
  }
  /// Returns the saved words, in all lanes that have bits in them.
  [[gnu::always_inline]] static Mask<Lanes> load(const real* from) {
    Words v;
    std::memcpy(&v, from, sizeof v);
    return repeated<Lanes, words>(v);
  }
};

/// visit(std::integral_constant<Index, N>, j): columns j .. j + N - 1, for all of n columns.
template <class Visit>
inline void for_columns(Index n, const Visit& visit) {
  Index j = 0;
  constexpr Index most = 4 * vector_lanes;
  for (; n - j >= most; j += most) visit(std::integral_constant<Index, most>(), j);
  const auto rest = [&](auto self, auto size) -> void {
    constexpr Index N = decltype(size)::value;
    if (n - j >= N) {
      visit(size, j);
      j += N;
    }
    if constexpr (N > 1) self(self, std::integral_constant<Index, N / 2>());
  };
  if (j < n) rest(rest, std::integral_constant<Index, most / 2>());
}

/// N columns of each of G consecutive heads: of all columns of these heads, unless G is 1. The loops are over
/// one array, so that the compiler keeps it in registers.
template <Index G, Index N>
struct Tile {
  static constexpr Index lanes = std::min(N, vector_lanes);
  static constexpr Index per_head = N / lanes;
  static constexpr Index count = G * per_head;
  using V = Vector<lanes>;
  V v[count];

  template <class X>  // real, or Bfloat16 with core/simd/lanes.hpp
  [[gnu::always_inline]] static Tile from(const X* row) {
    Tile t;
    for (Index i = 0; i < count; ++i) t.v[i] = load<lanes>(row + i * lanes);
    return t;
  }
  /// factor[g] row, or 0 when `factor` is null: the row is not read then.
  [[gnu::always_inline]] static Tile scaled(const real* factor, const real* row) {
    Tile t{};
    if (factor != nullptr)
      for (Index i = 0; i < count; ++i) t.v[i] = factor[i / per_head] * load<lanes>(row + i * lanes);
    return t;
  }
  template <class X>
  [[gnu::always_inline]] void to(X* row) const {
    for (Index i = 0; i < count; ++i) store<lanes>(row + i * lanes, v[i]);
  }
  [[gnu::always_inline]] void add(const real* factor, const Tile& x) {
    for (Index i = 0; i < count; ++i) v[i] += factor[i / per_head] * x.v[i];
  }
  [[gnu::always_inline]] void add(const Tile& x) {
    for (Index i = 0; i < count; ++i) v[i] += x.v[i];
  }
  /// One number a head.
  [[nodiscard, gnu::always_inline]] Vector<G> dot(const Tile& x) const {
    V products[G];
    for (Index i = 0; i < count; ++i)
      products[i / per_head] = i % per_head == 0 ? v[i] * x.v[i] : products[i / per_head] + v[i] * x.v[i];
    return lane_sums<G, lanes>(products);
  }
  /// leaky_relu(x + y)
  [[nodiscard, gnu::always_inline]] static Tile leaky_sum(const Tile& x, const Tile& y, real slope) {
    Tile t;
    for (Index i = 0; i < count; ++i) {
      const V z = x.v[i] + y.v[i];
      t.v[i] = z > 0 ? z : slope * z;
    }
    return t;
  }
  /// += factor where x is above `bound`: set in the result.
  [[gnu::always_inline]] Mask<lanes> add_where_above(const Tile& x, const Tile& bound, const real* factor) {
    static_assert(count <= 8);
    Mask<lanes> signs{};
    for (Index i = 0; i < count; ++i) {
      const auto above = x.v[i] > bound.v[i];
      v[i] = above ? v[i] + factor[i / per_head] : v[i];
      signs = above ? signs | Signs<lanes>::bits(i) : signs;
    }
    return signs;
  }
  /// Set where these indices, those of vector i from `indices` + i lanes on, equal `index`.
  template <class Index32>
  [[nodiscard, gnu::always_inline]] static Mask<lanes> equal_to(const Mask<lanes> (&indices)[count],
                                                                Index32 index) {
    static_assert(count <= 8);
    Mask<lanes> signs{};
    const auto wanted = Mask<lanes>{} + index;
    for (Index i = 0; i < count; ++i) signs = indices[i] == wanted ? signs | Signs<lanes>::bits(i) : signs;
    return signs;
  }
  /// += factor where `signs` are set
  [[gnu::always_inline]] void add_where(const Mask<lanes>& signs, const real* factor) {
    for (Index i = 0; i < count; ++i)
      v[i] = (signs & Signs<lanes>::bits(i)) != 0 ? v[i] + factor[i / per_head] : v[i];
  }
};

/// Vectors of a tile: so many sums, and as many of the row at hand, stay in registers.
inline constexpr Index tile_vectors = vector_bytes == 64 ? 8 : 4;

/// visit(constant G, constant N, h, j): columns j .. j + N - 1 of heads h .. h + G - 1; all columns of all
/// heads, several heads at once where their width allows it.
template <class Visit>
inline void for_tiles(Index heads, Index dim, const Visit& visit) {
  const auto heads_of_width = [&]<Index N>(std::integral_constant<Index, N> width) {
    constexpr Index vectors = std::max<Index>(N / vector_lanes, 1);
    constexpr Index most = std::min(tile_vectors / vectors, std::min(N, vector_lanes));
    if constexpr (most > 1) {
      if (dim != N || heads == 1) return false;
      Index h = 0;
      for (; heads - h >= most; h += most) visit(std::integral_constant<Index, most>(), width, h, Index{0});
      const auto rest = [&](auto self, auto count) -> void {
        constexpr Index G = decltype(count)::value;
        if (heads - h >= G) {
          visit(count, width, h, Index{0});
          h += G;
        }
        if constexpr (G > 1) self(self, std::integral_constant<Index, G / 2>());
      };
      if (h < heads) rest(rest, std::integral_constant<Index, most / 2>());
      return true;
    }
    return false;
  };
  const bool done = [&]<Index... N>(std::integer_sequence<Index, N...>) {
    return (heads_of_width(std::integral_constant<Index, N>()) || ...);
  }
  (std::integer_sequence<Index, 64, 32, 16, 8, 4>());
  if (done) return;
  for (Index h = 0; h < heads; ++h)
    for_columns(dim, [&](auto width, Index j) { visit(std::integral_constant<Index, 1>(), width, h, j); });
}

/// visit(constant G, constant N, j): the G N columns of a tile from j on, for all of n columns. Vectors stand
/// for heads where they divide the columns.
template <class Visit>
inline void for_row_tiles(Index n, const Visit& visit) {
  constexpr Index vector = std::max<Index>(vector_lanes, 4);
  const Index dim = n % vector == 0 ? vector : n;
  for_tiles(n / std::max<Index>(dim, 1), dim,
            [&](auto g, auto width, Index h, Index j) { visit(g, width, h * dim + j); });
}

}  // namespace lanes

#include <sar/core/isa/isa_end.hpp>
