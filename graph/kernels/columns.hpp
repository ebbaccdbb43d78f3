/// Columns of gathered rows in registers: the inner loops of kernels that combine one row at hand with rows
/// from anywhere, several heads at a time. For implementation files.
#pragma once

#include <sar/config.hpp>
#include <sar/core/row_requests.hpp>

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

/// The same anywhere in memory. Stores of it change numbers only: after a memcpy, the compiler would read every
/// size and pointer again.
template <Index Lanes>
struct VectorInMemory {
  typedef real type __attribute__((vector_size(Lanes * sizeof(real)), aligned(sizeof(real))));  // NOLINT
};

template <Index Lanes>
[[gnu::always_inline]] inline Vector<Lanes> load(const real* from) {
  return *reinterpret_cast<const typename VectorInMemory<Lanes>::type*>(from);
}

template <Index Lanes>
[[gnu::always_inline]] inline void store(real* to, const Vector<Lanes>& v) {
  *reinterpret_cast<typename VectorInMemory<Lanes>::type*>(to) = v;
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

/// v, again and again.
template <Index Lanes, Index L>
[[gnu::always_inline]] inline Vector<Lanes> repeated(const Vector<L>& v) {
  if constexpr (L == Lanes)
    return v;
  else
    return [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
      return repeated<Lanes, 2 * L>(__builtin_shufflevector(v, v, static_cast<int>(I % L)...));
    }
    (std::make_index_sequence<static_cast<std::size_t>(2 * L)>());
}

/// The groups of L neighbouring lanes of v, combined into one.
template <Index L, Index Lanes, class Combine>
[[gnu::always_inline]] inline Vector<L> groups_combined(const Vector<Lanes>& v, const Combine& combine) {
  if constexpr (L == Lanes)
    return v;
  else
    return [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
      return groups_combined<L, Lanes / 2>(combine(__builtin_shufflevector(v, v, static_cast<int>(I)...),
                                                   __builtin_shufflevector(v, v, static_cast<int>(I + Lanes / 2)...)),
                                           combine);
    }
    (std::make_index_sequence<static_cast<std::size_t>(Lanes / 2)>());
}

/// visit(constant lanes, at): the numbers at .. at + lanes - 1 for all of n rows of L numbers that lie `stride`
/// apart; those of several rows at once where rows lie side by side.
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
[[gnu::always_inline]] inline Vector<L> rows_combined(Index n, Index stride, const Vector<L>& first, const Row& row, const Combine& combine) {
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

/// Signs of up to 8 vectors: a bit each. That of lane l of vector i is bit 8 (l / words) + i of word l % words.
template <Index Lanes>
struct Signs {
  static constexpr Index words = std::max<Index>(Lanes / static_cast<Index>(sizeof(real)), 1);
  using Words = Mask<words>;

  /// With the bits of vector i set in all lanes.
  [[gnu::always_inline]] static Mask<Lanes> bits(Index i) {
    using Lane = std::remove_reference_t<decltype(Mask<Lanes>{}[0])>;
    const auto bit = [&](Index l) { return static_cast<Lane>(std::uint64_t{1} << (l / words * 8 + i)); };
    if constexpr (Lanes == 1) return Mask<1>{bit(0)};  // GCC 12 takes an assigned lane for one that is not set
    Mask<Lanes> all{};
    for (Index l = 0; l < Lanes; ++l) all[l] = bit(l);
    return all;
  }
  /// The words of what lanes have collected.
  template <Index L = Lanes>
  [[gnu::always_inline]] static void save(const Mask<L>& lanes, real* to) {
    if constexpr (L == words) {
      std::memcpy(to, &lanes, sizeof lanes);
    } else {
      const auto half = [&]<std::size_t... I>(std::index_sequence<I...>, auto from) __attribute__((always_inline)) {
        return __builtin_shufflevector(lanes, lanes, static_cast<int>(I + from)...);
      };
      const auto indices = std::make_index_sequence<static_cast<std::size_t>(L / 2)>();
      save<L / 2>(half(indices, std::integral_constant<std::size_t, 0>()) |
                      half(indices, std::integral_constant<std::size_t, L / 2>()),
                  to);
    }
  }
  /// Words in all lanes that have bits in them.
  [[gnu::always_inline]] static Mask<Lanes> load(const real* from) {
    Words v;
    std::memcpy(&v, from, sizeof v);
    return repeated<words>(v);
  }

 private:
  /// Lanes that repeat v: doubled in registers step by step, because GCC 12 goes through memory in one step.
  template <Index L>
  [[gnu::always_inline]] static Mask<Lanes> repeated(const Mask<L>& v) {
    if constexpr (L == Lanes) {
      return v;
    } else {
      return [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
        return repeated<2 * L>(__builtin_shufflevector(v, v, static_cast<int>(I)...));
      }
      (std::make_index_sequence<static_cast<std::size_t>(2 * L)>());
    }
  }
};

/// The sums of the lanes of each of G vectors, by halves: pairs of vectors become one until one is left.
template <Index G, Index Lanes>
[[gnu::always_inline]] inline Vector<G> lane_sums(const Vector<Lanes>* v) {
  static_assert(G <= Lanes && vector_lanes % G == 0);
  if constexpr (Lanes == 1) {
    return *v;
  } else {
    Vector<Lanes> left[G];
    for (Index g = 0; g < G; ++g) left[g] = v[g];
    const auto pairs = [&](auto self, auto count) __attribute__((always_inline)) -> Vector<G> {
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
  }(std::integer_sequence<Index, 64, 32, 16, 8, 4>());
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
  request_row(row, N);
}

/// Gathered rows, of which `heads` times `dim` columns count, from `first` on. next[i] are the rows that are
/// gathered after them: requested when at[i] is used; null: none are requested. Of several loops over the same
/// rows, only the last requests the next ones: the others find theirs in the cache, and their computation
/// would wait for requests of a part of a row (measured: GATv2's backward pass takes 1.1 to 1.2 times as long).
struct Rows {
  const real* const* at;
  const real* const* next;
  Index n;
  Index first;
  Index heads;
  Index dim;

  [[nodiscard]] Rows without_requests() const { return {at, nullptr, n, first, heads, dim}; }
};

/// use(i, tile of row i) for all rows.
template <Index G, Index N, class Use>
[[gnu::always_inline]] inline void for_rows(const Rows& rows, Index h, Index j, const Use& use) {
  const Index column = rows.first + h * rows.dim + j;
  const Index n = rows.n;
  const real* const* at = rows.at;
  const real* const* next = rows.next;
  if (next == nullptr) {
    for (Index i = 0; i < n; ++i) use(i, Tile<G, N>::from(at[i] + column));
  } else {
    for (Index i = 0; i < n; ++i) {
      request<G * N>(next[i] + column);
      use(i, Tile<G, N>::from(at[i] + column));
    }
  }
}

/// Numbers of heads h .. h + G - 1 of edge i; the first columns of a row set them, others add to them.
template <Index G>
[[gnu::always_inline]] inline void put(const Vector<G>& v, bool set, real* to) {
  store<G>(to, set ? v : load<G>(to) + v);
}

// In what follows x, to and a are [heads, dim], factor and out are [n, heads], keep is [heads]. The loops over rows
// are functions of their own everywhere: inlined, they would share the registers with what is around them.

/// to = keep to + sum over the rows i of  factor[i] rows[i];  keep = null stands for 0: to is not read.
[[gnu::noinline]] inline void add_rows(const Rows& rows, const real* factor, const real* keep, real* to) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    real* column = to + h * rows.dim + j;
    auto sum = Tile<g, n>::scaled(keep != nullptr ? keep + h : nullptr, column);
    for_rows<g, n>(rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) { sum.add(factor + i * rows.heads + h, row); });
    sum.to(column);
  });
}

/// out[i] = <x, rows[i]>
[[gnu::noinline]] inline void dots(const Rows& rows, const real* x, real* out) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    const auto mine = Tile<g, n>::from(x + h * rows.dim + j);
    for_rows<g, n>(rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
      put<g>(mine.dot(row), j == 0, out + i * rows.heads + h);
    });
  });
}

/// Both at once.
[[gnu::noinline]] inline void dots_and_add(const Rows& rows, const real* x, real* out, const real* factor, const real* keep,
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

/// Words, of the size of a real, for the signs of a row's columns.
inline Index sign_words(Index heads, Index dim) {
  Index words = 0;
  for_tiles(heads, dim, [&](auto g, auto n, Index, Index) { words += Signs<Tile<g, n>::lanes>::words; });
  return words;
}

/// out[i] = <a, leaky_relu(x + rows[i])>
[[gnu::noinline]] inline void leaky_dots(const Rows& rows, const real* x, const real* a, real slope, real* out) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    using T = Tile<g, n>;
    const auto mine = T::from(x + h * rows.dim + j);
    const auto factor = T::from(a + h * rows.dim + j);
    for_rows<g, n>(
        rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
          put<g>(factor.dot(T::leaky_sum(mine, row, slope)), j == 0, out + i * rows.heads + h);
        });
  });
}

/// sums[h] = slope all[h] + (1 - slope) where_set: what sums by signs come to.
template <Index G, Index N>
[[gnu::always_inline]] inline void put_by_signs(Tile<G, N>& where_set, const Vector<G>& all, real slope,
                                                real* sums) {
  using T = Tile<G, N>;
  for (Index k = 0; k < T::count; ++k)
    where_set.v[k] = slope * all[k / T::per_head] + (1 - slope) * where_set.v[k];
  where_set.to(sums);
}

/// sums = sum over the rows i of  factor[i] where x + rows[i] is above 0, slope factor[i] elsewhere. These
/// signs of row i go to signs + i sign_words(), unless null.
[[gnu::noinline]] inline void sum_by_signs_of(const Rows& rows, const real* x, const real* factor, real slope, real* sums,
                            real* signs) {
  const Index words = sign_words(rows.heads, rows.dim);
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    using T = Tile<g, n>;
    T bound = T::from(x + h * rows.dim + j), where_set{};
    for (Index k = 0; k < T::count; ++k) bound.v[k] = -bound.v[k];
    Vector<g> all{};
    const auto add = [&](Index i, const auto& row) __attribute__((always_inline)) {
      const real* of_edge = factor + i * rows.heads + h;
      all += load<g>(of_edge);
      return where_set.add_where_above(row, bound, of_edge);
    };
    if (signs == nullptr) {
      for_rows<g, n>(rows, h, j, add);
    } else {
      for_rows<g, n>(
          rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
            Signs<T::lanes>::save(add(i, row), signs + i * words);
          });
      signs += Signs<T::lanes>::words;
    }
    put_by_signs<g, n>(where_set, all, slope, sums + h * rows.dim + j);
  });
}

/// The same over n rows with signs that sum_by_signs_of() left. Numbers and signs of row i lie at factor + i
/// factor_stride and signs + i signs_stride; the rows themselves are not read.
[[gnu::noinline]] inline void sum_by_signs(Index n, Index heads, Index dim, const real* factor, Index factor_stride,
                         const real* signs, Index signs_stride, real slope, real* sums) {
  for_tiles(heads, dim, [&](auto g, auto width, Index h, Index j) {
    using T = Tile<g, width>;
    T where_set{};
    Vector<g> all{};
    for (Index i = 0; i < n; ++i) {
      const real* of_edge = factor + i * factor_stride + h;
      where_set.add_where(Signs<T::lanes>::load(signs + i * signs_stride), of_edge);
      all += load<g>(of_edge);
    }
    put_by_signs<g, width>(where_set, all, slope, sums + h * dim + j);
    signs += Signs<T::lanes>::words;
  });
}

/// to += x y
inline void add_products(Index n, const real* x, const real* y, real* to) {
  for (Index j = 0; j < n; ++j) to[j] += x[j] * y[j];
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

/// to = x + factor (to - x), per head
inline void scale_from(Index heads, Index dim, const real* factor, const real* x, real* to) {
  for_tiles(heads, dim, [&](auto g, auto n, Index h, Index j) {
    using T = Tile<g, n>;
    const Index column = h * dim + j;
    T sum = T::from(x + column), difference = T::from(to + column);
    for (Index k = 0; k < T::count; ++k) difference.v[k] -= sum.v[k];
    sum.add(factor + h, difference);
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
