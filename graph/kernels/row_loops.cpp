// SPDX-License-Identifier: MIT

#include <sar/core/simd/loop_hints.hpp>
#include <sar/graph/kernels/row_loops.hpp>

#include <sar/core/isa/isa_begin.hpp>

namespace lanes {

/// Calls use(i, tile of row i) for all rows.
template <Index G, Index N, class X, class Use>
[[gnu::always_inline]] inline void for_rows(const RowsOf<X>& rows, Index h, Index j, const Use& use) {
  const Index column = rows.first + h * rows.dim + j;
  const Index n = rows.n;
  const X* const* at = rows.at;
  const X* const* next = rows.next;
  if (next == nullptr) {
    for (Index i = 0; i < n; ++i) use(i, Tile<G, N>::from(at[i] + column));
  } else {
    for (Index i = 0; i < n; ++i) {
      prefetch_bytes(next[i] + column, G * N * static_cast<Index>(sizeof(X)));
      use(i, Tile<G, N>::from(at[i] + column));
    }
  }
}

/// Writes values of the heads h .. h + G - 1 of an edge. The first tile of a row sets them, later tiles add
/// to them.
template <Index G>
[[gnu::always_inline]] inline void put(const Vector<G>& v, bool set, real* to) {
  store<G>(to, set ? v : load<G>(to) + v);
}

template <class X>
void add_rows(const RowsOf<X>& rows, const real* factor, const real* keep, real* to) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    real* column = to + h * rows.dim + j;
    auto sum = Tile<g, n>::scaled(keep != nullptr ? keep + h : nullptr, column);
    for_rows<g, n>(
        rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
          sum.add(factor + i * rows.heads + h, row);
        });
    sum.to(column);
  });
}

template <class X>
void dots(const RowsOf<X>& rows, const real* x, real* out) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    const auto mine = Tile<g, n>::from(x + h * rows.dim + j);
    for_rows<g, n>(
        rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
          put<g>(mine.dot(row), j == 0, out + i * rows.heads + h);
        });
  });
}

template <class X>
void dots_and_add(const RowsOf<X>& rows, const real* x, real* out, const real* factor, const real* keep,
                  real* to) {
  for_tiles(rows.heads, rows.dim, [&](auto g, auto n, Index h, Index j) {
    real* column = to + h * rows.dim + j;
    const auto mine = Tile<g, n>::from(x + h * rows.dim + j);
    auto sum = Tile<g, n>::scaled(keep != nullptr ? keep + h : nullptr, column);
    for_rows<g, n>(
        rows, h, j, [&](Index i, const auto& row) __attribute__((always_inline)) {
          put<g>(mine.dot(row), j == 0, out + i * rows.heads + h);
          sum.add(factor + i * rows.heads + h, row);
        });
    sum.to(column);
  });
}

Index sign_words(Index heads, Index dim) {
  Index words = 0;
  for_tiles(heads, dim, [&](auto g, auto n, Index, Index) { words += Signs<Tile<g, n>::lanes>::words; });
  return words;
}

template <class X>
void leaky_dots(const RowsOf<X>& rows, const real* x, const real* a, real slope, real* out) {
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

/// Computes sums[h] = slope all[h] + (1 - slope) where_set, the result of a sum by signs.
template <Index G, Index N>
[[gnu::always_inline]] inline void put_by_signs(Tile<G, N>& where_set, const Vector<G>& all, real slope,
                                                real* sums) {
  using T = Tile<G, N>;
  for (Index k = 0; k < T::count; ++k)
    where_set.v[k] = slope * all[k / T::per_head] + (1 - slope) * where_set.v[k];
  where_set.to(sums);
}

template <class X>
void sum_by_signs_of(const RowsOf<X>& rows, const real* x, const real* factor, real slope, real* sums,
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

void sum_by_signs(Index n, Index heads, Index dim, const real* factor, Index factor_stride, const real* signs,
                  Index signs_stride, real slope, real* sums) {
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

void add_scaled(Index heads, Index dim, const real* factor, const real* x, real* to) {
  for_tiles(heads, dim, [&](auto g, auto n, Index h, Index j) {
    const Index column = h * dim + j;
    auto sum = Tile<g, n>::from(to + column);
    sum.add(factor + h, Tile<g, n>::from(x + column));
    sum.to(to + column);
  });
}

void scale_from(Index heads, Index dim, const real* factor, const real* x, real* to) {
  for_tiles(heads, dim, [&](auto g, auto n, Index h, Index j) {
    using T = Tile<g, n>;
    const Index column = h * dim + j;
    T sum = T::from(x + column), difference = T::from(to + column);
    for (Index k = 0; k < T::count; ++k) difference.v[k] -= sum.v[k];
    sum.add(factor + h, difference);
    sum.to(to + column);
  });
}

void head_dots(Index heads, Index dim, const real* x, const real* y, real* out) {
  for_tiles(heads, dim, [&](auto g, auto n, Index h, Index j) {
    const Index column = h * dim + j;
    put<g>(Tile<g, n>::from(x + column).dot(Tile<g, n>::from(y + column)), j == 0, out + h);
  });
}

template void add_rows(const RowsOf<real>& rows, const real* factor, const real* keep, real* to);
template void add_rows(const RowsOf<Bfloat16>& rows, const real* factor, const real* keep, real* to);
template void dots(const RowsOf<real>& rows, const real* x, real* out);
template void dots(const RowsOf<Bfloat16>& rows, const real* x, real* out);
template void dots_and_add(const RowsOf<real>& rows, const real* x, real* out, const real* factor,
                           const real* keep, real* to);
template void dots_and_add(const RowsOf<Bfloat16>& rows, const real* x, real* out, const real* factor,
                           const real* keep, real* to);
template void leaky_dots(const RowsOf<real>& rows, const real* x, const real* a, real slope, real* out);
template void leaky_dots(const RowsOf<Bfloat16>& rows, const real* x, const real* a, real slope, real* out);
template void sum_by_signs_of(const RowsOf<real>& rows, const real* x, const real* factor, real slope,
                              real* sums, real* signs);
template void sum_by_signs_of(const RowsOf<Bfloat16>& rows, const real* x, const real* factor, real slope,
                              real* sums, real* signs);

}  // namespace lanes

#include <sar/core/isa/isa_end.hpp>
