/// Columns of gathered rows in registers: the inner loops of kernels that combine one row at hand with rows
/// from anywhere. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <algorithm>
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
inline Vector<Lanes> load(const real* from) {
  Vector<Lanes> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <Index Lanes>
inline void store(real* to, const Vector<Lanes>& v) {
  std::memcpy(to, &v, sizeof v);
}

template <Index Lanes, std::size_t... I>
inline Vector<Lanes> folded(const Vector<Lanes * 2>& v, std::index_sequence<I...>) {
  return __builtin_shufflevector(v, v, static_cast<int>(I)...) +
         __builtin_shufflevector(v, v, static_cast<int>(I + Lanes)...);
}

/// The sum of the lanes, by halves.
template <Index Lanes>
inline real lane_sum(const Vector<Lanes>& v) {
  if constexpr (Lanes == 1)
    return v[0];
  else if constexpr (Lanes == 2)
    return v[0] + v[1];
  else
    return lane_sum<Lanes / 2>(
        folded<Lanes / 2>(v, std::make_index_sequence<static_cast<std::size_t>(Lanes / 2)>()));
}

/// N columns of one row.
template <Index N>
struct Columns {
  static constexpr Index lanes = std::min(N, vector_lanes);
  static constexpr Index count = N / lanes;
  Vector<lanes> v[count];

  static Columns from(const real* row) {
    Columns c;
    for (Index i = 0; i < count; ++i) c.v[i] = load<lanes>(row + i * lanes);
    return c;
  }
  void to(real* row) const {
    for (Index i = 0; i < count; ++i) store<lanes>(row + i * lanes, v[i]);
  }
  void scale(real factor) {
    for (Index i = 0; i < count; ++i) v[i] *= factor;
  }
  void add(real factor, const Columns& x) {
    for (Index i = 0; i < count; ++i) v[i] += factor * x.v[i];
  }
  void add_product(const Columns& x, const Columns& y) {
    for (Index i = 0; i < count; ++i) v[i] += x.v[i] * y.v[i];
  }
  /// leaky_relu of x + y, and its slope.
  [[nodiscard]] static Columns leaky_sum(const Columns& x, const Columns& y, real slope) {
    Columns c;
    for (Index i = 0; i < count; ++i) {
      const Vector<lanes> z = x.v[i] + y.v[i];
      c.v[i] = z > 0 ? z : slope * z;
    }
    return c;
  }
  [[nodiscard]] static Columns leaky_slope(const Columns& x, const Columns& y, real slope) {
    const Vector<lanes> one = Vector<lanes>{} + real{1};
    Columns c;
    for (Index i = 0; i < count; ++i) c.v[i] = x.v[i] + y.v[i] > 0 ? one : slope * one;
    return c;
  }
  [[nodiscard]] real sum() const {
    Vector<lanes> all = v[0];
    for (Index i = 1; i < count; ++i) all += v[i];
    return lane_sum<lanes>(all);
  }
  [[nodiscard]] real dot(const Columns& x) const {
    Vector<lanes> all = v[0] * x.v[0];
    for (Index i = 1; i < count; ++i) all += v[i] * x.v[i];
    return lane_sum<lanes>(all);
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

/// Asks for N columns that will be read soon.
template <Index N>
inline void request(const real* row) {
  constexpr Index line = 64 / static_cast<Index>(sizeof(real));
  for (Index j = 0; j < N; j += line) __builtin_prefetch(row + j);
}

/// Gathered rows, and those that are gathered after them: next[i] is requested when at[i] is used.
struct Rows {
  const real* const* at;
  const real* const* next;
  Index n;
};

/// to = keep to + sum over the rows i of  factor[i] rows[i][first .. first + n);  keep = 0: to is not read.
inline void add_rows(const Rows& rows, Index first, Index n, const real* factor, real keep, real* to) {
  for_columns(n, [&](auto size, Index j) {
    constexpr Index N = decltype(size)::value;
    Columns<N> sum{};
    if (keep != 0) {
      sum = Columns<N>::from(to + j);
      sum.scale(keep);
    }
    for (Index i = 0; i < rows.n; ++i) {
      sum.add(factor[i], Columns<N>::from(rows.at[i] + first + j));
      request<N>(rows.next[i] + first + j);
    }
    sum.to(to + j);
  });
}

/// out[i] = <x, rows[i][first .. first + n)>
inline void dots(const Rows& rows, Index first, Index n, const real* x, real* out) {
  for_columns(n, [&](auto size, Index j) {
    constexpr Index N = decltype(size)::value;
    const auto mine = Columns<N>::from(x + j);
    for (Index i = 0; i < rows.n; ++i) {
      const real dot = mine.dot(Columns<N>::from(rows.at[i] + first + j));
      out[i] = j == 0 ? dot : out[i] + dot;
      request<N>(rows.next[i] + first + j);
    }
  });
}

/// Both at once.
inline void dots_and_add(const Rows& rows, Index first, Index n, const real* x, real* out, const real* factor,
                         real keep, real* to) {
  for_columns(n, [&](auto size, Index j) {
    constexpr Index N = decltype(size)::value;
    const auto mine = Columns<N>::from(x + j);
    Columns<N> sum{};
    if (keep != 0) {
      sum = Columns<N>::from(to + j);
      sum.scale(keep);
    }
    for (Index i = 0; i < rows.n; ++i) {
      const auto row = Columns<N>::from(rows.at[i] + first + j);
      const real dot = mine.dot(row);
      out[i] = j == 0 ? dot : out[i] + dot;
      sum.add(factor[i], row);
      request<N>(rows.next[i] + first + j);
    }
    sum.to(to + j);
  });
}

/// out[i] = <a, leaky_relu(x + rows[i][first .. first + n))>
inline void leaky_dots(const Rows& rows, Index first, Index n, const real* x, const real* a, real slope,
                       real* out) {
  for_columns(n, [&](auto size, Index j) {
    constexpr Index N = decltype(size)::value;
    const auto mine = Columns<N>::from(x + j);
    const auto factor = Columns<N>::from(a + j);
    for (Index i = 0; i < rows.n; ++i) {
      const auto row = Columns<N>::from(rows.at[i] + first + j);
      const real dot = factor.dot(Columns<N>::leaky_sum(mine, row, slope));
      out[i] = j == 0 ? dot : out[i] + dot;
      request<N>(rows.next[i] + first + j);
    }
  });
}

/// to = keep to + a sum over i of  factor[i] leaky_relu'(x + rows[i][first .. first + n)), elementwise; with
/// `values`, that is set to the sum of  factor[i] leaky_relu(x + rows[i]).
inline void add_leaky_slopes(const Rows& rows, Index first, Index n, const real* x, const real* a, real slope,
                             const real* factor, real keep, real* to, real* values) {
  for_columns(n, [&](auto size, Index j) {
    constexpr Index N = decltype(size)::value;
    const auto mine = Columns<N>::from(x + j);
    Columns<N> slopes{}, sum{};
    for (Index i = 0; i < rows.n; ++i) {
      const auto row = Columns<N>::from(rows.at[i] + first + j);
      slopes.add(factor[i], Columns<N>::leaky_slope(mine, row, slope));
      if (values != nullptr) sum.add(factor[i], Columns<N>::leaky_sum(mine, row, slope));
    }
    if (values != nullptr) sum.to(values + j);
    sum = Columns<N>{};
    if (keep != 0) {
      sum = Columns<N>::from(to + j);
      sum.scale(keep);
    }
    sum.add_product(Columns<N>::from(a + j), slopes);
    sum.to(to + j);
  });
}

/// to += factor x
inline void add_scaled(Index n, real factor, const real* x, real* to) {
  for_columns(n, [&](auto size, Index j) {
    constexpr Index N = decltype(size)::value;
    auto sum = Columns<N>::from(to + j);
    sum.add(factor, Columns<N>::from(x + j));
    sum.to(to + j);
  });
}

/// <x, y>
inline real dot(Index n, const real* x, const real* y) {
  real sum = 0;
  for_columns(n, [&](auto size, Index j) {
    constexpr Index N = decltype(size)::value;
    sum += Columns<N>::from(x + j).dot(Columns<N>::from(y + j));
  });
  return sum;
}

/// Sum and largest of n > 0 values.
inline real sum(Index n, const real* x) {
  real all = 0;
  for_columns(n, [&](auto size, Index j) {
    constexpr Index N = decltype(size)::value;
    all += Columns<N>::from(x + j).sum();
  });
  return all;
}

inline real largest(Index n, const real* x) {
  constexpr Index lanes = 128 / (8 * static_cast<Index>(sizeof(real)));
  if (n < lanes) return *std::max_element(x, x + n);
  auto best = load<lanes>(x + n - lanes);
  for (Index j = 0; j + lanes < n; j += lanes) {
    const auto v = load<lanes>(x + j);
    best = v > best ? v : best;
  }
  real most = best[0];
  for (Index l = 1; l < lanes; ++l) most = std::max(most, best[l]);
  return most;
}

}  // namespace columns

#include <sar/core/isa_end.hpp>
