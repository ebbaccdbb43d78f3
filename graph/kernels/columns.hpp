/// Columns of gathered rows in registers: the inner loops of kernels that combine one row at hand with rows
/// from anywhere, several heads at a time. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <sar/core/isa_begin.hpp>

namespace columns {

inline constexpr Index vector_bytes = SAR_VECTOR_BYTES;
inline constexpr Index vector_lanes = vector_bytes / static_cast<Index>(sizeof(real));

template <Index Lanes>
struct VectorOf {
  typedef real type __attribute__((vector_size(Lanes * sizeof(real))));  // NOLINT: a dependent size
};

template <Index Lanes>
using Vector = typename VectorOf<Lanes>::type;

template <Index Lanes>
[[gnu::always_inline]] inline Vector<Lanes> load(const real* from) {
  Vector<Lanes> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <Index Lanes>
[[gnu::always_inline]] inline void store(real* to, const Vector<Lanes>& v) {
  std::memcpy(to, &v, sizeof v);
}

/// What a comparison of vectors gives, and as which indices are compared and chosen.
template <Index Lanes>
using Mask = decltype(Vector<Lanes>{} > Vector<Lanes>{});

template <Index Lanes>
struct IndicesOf {
  typedef std::int32_t type __attribute__((vector_size(Lanes * sizeof(std::int32_t))));  // NOLINT
};

template <Index Lanes>
[[gnu::always_inline]] inline Mask<Lanes> load_indices(const std::int32_t* from) {
  typename IndicesOf<Lanes>::type v;
  std::memcpy(&v, from, sizeof v);
  return __builtin_convertvector(v, Mask<Lanes>);
}

template <Index Lanes>
[[gnu::always_inline]] inline void store_indices(std::int32_t* to, const Mask<Lanes>& indices) {
  const auto v = __builtin_convertvector(indices, typename IndicesOf<Lanes>::type);
  std::memcpy(to, &v, sizeof v);
}

/// Lanes of two vectors, or of one, whose groups of `group` lanes are to be added up: half of a group is
/// added to the other half.
template <Index Lanes, Index Out, Index group, std::size_t... I>
[[gnu::always_inline]] inline Vector<Out> folded(const Vector<Lanes>& a, const Vector<Lanes>& b, std::index_sequence<I...>) {
  constexpr Index half = group / 2;
  return __builtin_shufflevector(a, b, static_cast<int>(I / half * group + I % half)...) +
         __builtin_shufflevector(a, b, static_cast<int>(I / half * group + I % half + half)...);
}

/// The sums of G groups of neighbouring lanes.
template <Index G, Index Lanes>
[[gnu::always_inline]] inline Vector<G> lanes_folded(const Vector<Lanes>& v) {
  if constexpr (Lanes == G)
    return v;
  else
    return lanes_folded<G, Lanes / 2>(folded<Lanes, Lanes / 2, Lanes / G>(
        v, v, std::make_index_sequence<static_cast<std::size_t>(Lanes / 2)>()));
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
    const auto pairs = [&](auto self, auto count) -> Vector<G> {
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

  [[gnu::always_inline]] static Tile from(const real* row) {
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
  [[gnu::always_inline]] void to(real* row) const {
    for (Index i = 0; i < count; ++i) store<lanes>(row + i * lanes, v[i]);
  }
  [[gnu::always_inline]] void add(const real* factor, const Tile& x) {
    for (Index i = 0; i < count; ++i) v[i] += factor[i / per_head] * x.v[i];
  }
  [[gnu::always_inline]] void add(const Tile& x) {
    for (Index i = 0; i < count; ++i) v[i] += x.v[i];
  }
  [[gnu::always_inline]] void add_product(const Tile& x, const Tile& y) {
    for (Index i = 0; i < count; ++i) v[i] += x.v[i] * y.v[i];
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
  /// += factor leaky_relu'(x + y)
  [[gnu::always_inline]] void add_leaky_slope(const real* factor, const Tile& x, const Tile& y, real slope) {
    for (Index i = 0; i < count; ++i) {
      const V above = V{} + factor[i / per_head];
      v[i] += x.v[i] + y.v[i] > 0 ? above : above * slope;
    }
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
  }(std::integer_sequence<Index, 64, 32, 16, 8, 4>());
  if (done) return;
  for (Index h = 0; h < heads; ++h)
    for_columns(dim, [&](auto width, Index j) { visit(std::integral_constant<Index, 1>(), width, h, j); });
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

/// Asks for N columns that will be read soon.
template <Index N>
[[gnu::always_inline]] inline void request(const real* row) {
  constexpr Index line = 64 / static_cast<Index>(sizeof(real));
  for (Index j = 0; j < N; j += line) __builtin_prefetch(row + j);
}

/// Gathered rows, of which `heads` times `dim` columns count, from `first` on. next[i] are the rows that are
/// gathered after them: requested when at[i] is used, unless `next` is null.
struct Rows {
  const real* const* at;
  const real* const* next;
  Index n;
  Index first;
  Index heads;
  Index dim;

  /// The same rows, which lie in cache now.
  [[nodiscard]] Rows again() const { return {at, nullptr, n, first, heads, dim}; }
};

/// use(i, tile of row i) for all rows.
template <Index G, Index N, class Use>
[[gnu::always_inline]] inline void for_rows(const Rows& rows, Index h, Index j, const Use& use) {
  const Index column = rows.first + h * rows.dim + j;
  const Index n = rows.n;
  const real* const* at = rows.at;
  if (const real* const* next = rows.next; next == nullptr)
    for (Index i = 0; i < n; ++i) use(i, Tile<G, N>::from(at[i] + column));
  else
    for (Index i = 0; i < n; ++i) {
      request<G * N>(next[i] + column);
      use(i, Tile<G, N>::from(at[i] + column));
    }
}

/// Numbers of heads h .. h + G - 1 of edge i; the first columns of a row set them, others add to them.
template <Index G>
[[gnu::always_inline]] inline void put(const Vector<G>& v, bool set, real* to) {
  store<G>(to, set ? v : load<G>(to) + v);
}

// In what follows x, to and a are [heads, dim], factor and out are [n, heads], keep is [heads].

/// to = keep to + sum over the rows i of  factor[i] rows[i];  keep = null stands for 0: to is not read.
inline void add_rows(const Rows& rows, const real* factor, const real* keep, real* to) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    real* column = to + h * rows.dim + j;
    auto sum = Tile<g, n>::scaled(keep != nullptr ? keep + h : nullptr, column);
    for_rows<g, n>(rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) { sum.add(factor + i * rows.heads + h, row); });
    sum.to(column);
  });
}

/// out[i] = <x, rows[i]>
inline void dots(const Rows& rows, const real* x, real* out) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    const auto mine = Tile<g, n>::from(x + h * rows.dim + j);
    for_rows<g, n>(rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
      put<g>(mine.dot(row), j == 0, out + i * rows.heads + h);
    });
  });
}

/// Both at once.
inline void dots_and_add(const Rows& rows, const real* x, real* out, const real* factor, const real* keep,
                         real* to) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    real* column = to + h * rows.dim + j;
    const auto mine = Tile<g, n>::from(x + h * rows.dim + j);
    auto sum = Tile<g, n>::scaled(keep != nullptr ? keep + h : nullptr, column);
    for_rows<g, n>(rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
      put<g>(mine.dot(row), j == 0, out + i * rows.heads + h);
      sum.add(factor + i * rows.heads + h, row);
    });
    sum.to(column);
  });
}

/// out[i] = <a, leaky_relu(x + rows[i])>
inline void leaky_dots(const Rows& rows, const real* x, const real* a, real slope, real* out) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    const auto mine = Tile<g, n>::from(x + h * rows.dim + j);
    const auto factor = Tile<g, n>::from(a + h * rows.dim + j);
    for_rows<g, n>(rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
      put<g>(factor.dot(Tile<g, n>::leaky_sum(mine, row, slope)), j == 0, out + i * rows.heads + h);
    });
  });
}

/// to = keep to + a sum over i of  factor[i] leaky_relu'(x + rows[i]), elementwise; with `values` [heads,
/// dim], that is set to the sum of  factor[i] leaky_relu(x + rows[i]).
inline void add_leaky_slopes(const Rows& rows, const real* x, const real* a, real slope, const real* factor,
                             const real* keep, real* to, real* values) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    const Index column = h * rows.dim + j;
    const auto mine = Tile<g, n>::from(x + column);
    Tile<g, n> slopes{}, sum{};
    if (values == nullptr) {
      for_rows<g, n>(rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
        slopes.add_leaky_slope(factor + i * rows.heads + h, mine, row, slope);
      });
    } else {
      for_rows<g, n>(rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
        slopes.add_leaky_slope(factor + i * rows.heads + h, mine, row, slope);
        sum.add(factor + i * rows.heads + h, Tile<g, n>::leaky_sum(mine, row, slope));
      });
      sum.to(values + column);
    }
    sum = Tile<g, n>::scaled(keep != nullptr ? keep + h : nullptr, to + column);
    sum.add_product(Tile<g, n>::from(a + column), slopes);
    sum.to(to + column);
  });
}

/// to += factor x, per head
inline void add_scaled(Index heads, Index dim, const real* factor, const real* x, real* to) {
  for_tiles(heads, dim, [&](auto g, auto n, Index h, Index j) {
    const Index column = h * dim + j;
    auto sum = Tile<g, n>::from(to + column);
    sum.add(factor + h, Tile<g, n>::from(x + column));
    sum.to(to + column);
  });
}

/// out[h] = <x[h], y[h]>
inline void head_dots(Index heads, Index dim, const real* x, const real* y, real* out) {
  for_tiles(heads, dim, [&](auto g, auto n, Index h, Index j) {
    const Index column = h * dim + j;
    put<g>(Tile<g, n>::from(x + column).dot(Tile<g, n>::from(y + column)), j == 0, out + h);
  });
}

}  // namespace columns

#include <sar/core/isa_end.hpp>
