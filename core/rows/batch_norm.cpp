// SPDX-License-Identifier: MIT

// Batch normalization: one loop over rows, vectorized over columns. The coefficients of all columns (3 to 7
// vectors of F numbers) stay in the L1 cache; nothing is kept in registers across rows.
//
// Rows of bfloat16 numbers are read and written in place; rows of several types through buffers in the cache.
//
// Bytes moved per element (float): forward reads 4 and writes 4, the column sums read 8, the gradient of x
// reads 8 and writes 4; dropout adds one bit read.
#include <sar/core/rows/batch_norm.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

// Column moments in chunks of rows that fit into the L2 cache. Per chunk: one pass for the means, one for the
// squared deviations, both row by row and vectorized over columns. The moments of chunks are merged within a
// block, those of at most 64 blocks in block order. Bytes moved: x once.

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index max_blocks = 64;  // each has two doubles per column
constexpr Index min_block_rows = 256;
constexpr Index cached_elements = 1 << 15;  // elements of a chunk of rows, which is read twice

/// Two passes over a chunk of rows: means, then squared deviations from them.
template <class Number>
ColumnMoments moments_of_chunk(const TypedRows& x, Index begin, Index end) {
  RowReader<Number> from(x);
  const Index columns = x.row_size();
  ColumnMoments chunk{static_cast<double>(end - begin), std::vector<double>(columns),
                      std::vector<double>(columns)};
  double* mean = chunk.mean.data();
  double* m2 = chunk.m2.data();
  for (Index i = begin; i < end; ++i) {
    const Number* row = from.row(i);
    for (Index j = 0; j < columns; ++j) mean[j] += lanes::number(row[j]);
  }
  for (Index j = 0; j < columns; ++j) mean[j] /= chunk.count;
  for (Index i = begin; i < end; ++i) {
    const Number* row = from.row(i);
    for (Index j = 0; j < columns; ++j) {
      const double deviation = lanes::number(row[j]) - mean[j];
      m2[j] += deviation * deviation;
    }
  }
  return chunk;
}

}  // namespace

ColumnMoments column_moments(const TypedRows& x) {
  const Index columns = x.row_size();
  const Index chunk_rows = std::max<Index>(8, cached_elements / std::max<Index>(columns, 1));
  const auto moments = [&](Index begin, Index end) {
    return x.is_bfloat16() ? moments_of_chunk<Bfloat16>(x, begin, end)
                           : moments_of_chunk<real>(x, begin, end);
  };
  ColumnMoments zero{0, std::vector<double>(columns), std::vector<double>(columns)};
  const Index block_rows = std::max(min_block_rows, (x.num_rows() + max_blocks - 1) / max_blocks);
  return parallel_reduce(
      x.num_rows(), block_rows, zero,
      [&](Index begin, Index end) {
        ColumnMoments block = zero;
        for (Index first = begin; first < end; first += chunk_rows)
          block.merge(moments(first, std::min(end, first + chunk_rows)));
        return block;
      },
      [](ColumnMoments sum, const ColumnMoments& block) {
        sum.merge(block);
        return sum;
      });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(ColumnMoments, column_moments, (const TypedRows& x), (x));

#if SAR_COMPILED_ONCE

namespace sar { inline namespace SAR_PRECISION {

void ColumnMoments::merge(const ColumnMoments& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const double total = count + other.count;
  for (Index j = 0; j < std::ssize(mean); ++j) {
    const double delta = other.mean[j] - mean[j];
    mean[j] += delta * (other.count / total);
    m2[j] += other.m2[j] + delta * delta * (count * other.count / total);
  }
  count = total;
}
}}  // namespace sar

#endif

#include <sar/core/isa/isa_begin.hpp>

namespace {

using lanes::number;
using lanes::set_number;

/// Rows per parallel block: 2^14 elements, so that operands and result stay in the L2 cache.
Index rows_at_once(Index columns) {
  return std::max<Index>(1, (1 << 14) / std::max<Index>(columns, 1));
}

/// Pointers to the coefficients of all columns.
struct Columns {
  const real *center, *scale, *shift;
  real lowest;  // lower bound of the result: 0 with ReLU, -infinity without
  Index count;
};

template <class X, class Y>
void normalize_row(const Columns c, const X* from, Y* to) {
  SAR_INDEPENDENT_ITERATIONS
  for (Index j = 0; j < c.count; ++j) {
    const real value = (number(from[j]) - c.center[j]) * c.scale[j] + c.shift[j];
    set_number(to[j], value < c.lowest ? c.lowest : value);
  }
}

/// The same with dropout: an element is kept if `bit` of its word is set.
template <class X, class Y>
void normalize_row(const Columns c, const std::uint32_t* words, std::uint32_t bit, real kept, const X* from,
                   Y* to) {
  SAR_INDEPENDENT_ITERATIONS
  for (Index j = 0; j < c.count; ++j) {
    const real value = (number(from[j]) - c.center[j]) * c.scale[j] + c.shift[j];
    set_number(to[j], (value < c.lowest ? c.lowest : value) * ((words[j] & bit) != 0 ? kept : real{0}));
  }
}

/// Calls body(relu, dropout, number) with both flags as compile-time constants, and a number of the type of
/// all rows, or a real if there are several: some rows are widened then.
template <class Body, class... Rows>
void with_activation(const NormActivation& activation, const Body& body, const Rows&... rows) {
  const auto of_type = [&](auto number) {
    using Yes = std::true_type;
    using No = std::false_type;
    if (activation.relu)
      activation.dropout ? body(Yes(), Yes(), number) : body(Yes(), No(), number);
    else
      activation.dropout ? body(No(), Yes(), number) : body(No(), No(), number);
  };
  (... && rows.is_bfloat16()) ? of_type(Bfloat16()) : of_type(real());
}

/// The dropout bits of a row, if there is dropout.
struct RowDraws {
  RowDraws(const DropoutBits& dropout, Index row)
      : words(dropout ? dropout.words(row) : nullptr),
        bit(1u << row % DropoutBits::rows_of_word),
        kept(dropout.keep_scale()) {}
  const std::uint32_t* words;
  std::uint32_t bit;
  real kept;
};

/// The values that the backward pass needs at each column of one row.
template <bool relu, bool drops, class Number>
struct BackwardRow {
  const real *center, *inv_std, *xhat_shift, *scale, *shift;
  const Number *x, *grad;
  RowDraws draws;

  BackwardRow(const BatchNormCoefficients& c, const DropoutBits& dropout, RowReader<Number>& from,
              RowReader<Number>& gradient, Index row)
      : center(c.center.data()),
        inv_std(c.inv_std.data()),
        xhat_shift(c.xhat_shift.data()),
        scale(c.scale.data()),
        shift(c.shift.data()),
        x(from.row(row)),
        grad(gradient.row(row)),
        draws(dropout, row) {}

  [[nodiscard]] real xhat(Index j) const { return (number(x[j]) - center[j]) * inv_std[j] + xhat_shift[j]; }
  /// Returns the gradient before the activation.
  [[nodiscard]] real g(Index j) const {
    real value = number(grad[j]);
    if constexpr (relu) value = (number(x[j]) - center[j]) * scale[j] + shift[j] > 0 ? value : real{0};
    if constexpr (drops) value *= (draws.words[j] & draws.bit) != 0 ? draws.kept : real{0};
    return value;
  }
};

/// sum_g += g, sum_gx += g xhat
template <bool relu, bool drops, class Number>
void add_row(const BackwardRow<relu, drops, Number> row, Index columns, real* sum_g, real* sum_gx) {
  SAR_INDEPENDENT_ITERATIONS
  for (Index j = 0; j < columns; ++j) {
    const real g = row.g(j);
    sum_g[j] += g;
    sum_gx[j] += g * row.xhat(j);
  }
}

/// dx = scale (g - mean_g - xhat mean_gx)
template <bool relu, bool drops, class Number, class Dx>
void differentiate_row(const BackwardRow<relu, drops, Number> row, Index columns, const real* mean_g,
                       const real* mean_gx, Dx* dx) {
  SAR_INDEPENDENT_ITERATIONS
  for (Index j = 0; j < columns; ++j)
    set_number(dx[j], row.scale[j] * (row.g(j) - mean_g[j] - row.xhat(j) * mean_gx[j]));
}

template <class X, class Y>
void normalize_rows(const TypedRows& x, const BatchNormCoefficients& c, const NormActivation& activation,
                    Index first, Index count, Y* y) {
  RowReader<X> from(x);
  const Columns columns{c.center.data(), c.scale.data(), c.shift.data(),
                        activation.relu ? real{0} : -std::numeric_limits<real>::infinity(), x.row_size()};
  const DropoutBits& dropout = activation.dropout;
  for (Index row = first; row < first + count; ++row, y += columns.count) {
    if (dropout) {
      normalize_row(columns, dropout.words(row), 1u << row % DropoutBits::rows_of_word, dropout.keep_scale(),
                    from.row(row), y);
    } else {
      normalize_row(columns, from.row(row), y);
    }
  }
}

}  // namespace

void batch_norm_rows(const TypedRows& x, const BatchNormCoefficients& c, const NormActivation& activation,
                     Index first, Index count, TypedNumbers y) {
  with_type(y, [&](auto* to) {
    x.is_bfloat16() ? normalize_rows<Bfloat16>(x, c, activation, first, count, to)
                    : normalize_rows<real>(x, c, activation, first, count, to);
  });
}

void batch_norm_backward_sums(const TypedRows& x, const BatchNormCoefficients& c,
                              const NormActivation& activation, const TypedRows& grad,
                              std::span<double> sums) {
  constexpr Index rows_in_real = 32;
  const Index columns = x.row_size();
  const auto add = [&]<class Number>(auto relu, auto drops, Number) {
    const auto add_rows = [&](Index block_begin, Index block_end, double* partial) {
      std::vector<real> some(2 * columns);
      RowReader<Number> from(x), gradient(grad);
      for (Index first = block_begin; first < block_end; first += rows_in_real) {
        std::fill(some.begin(), some.end(), real{0});
        for (Index i = first; i < std::min(block_end, first + rows_in_real); ++i)
          add_row(BackwardRow<relu, drops, Number>(c, activation.dropout, from, gradient, i), columns,
                  some.data(), some.data() + columns);
        for (Index j = 0; j < 2 * columns; ++j) partial[j] += static_cast<double>(some[j]);
      }
    };
    sum_row_blocks(x.num_rows(), 2 * columns, add_rows, sums);
  };
  with_activation(activation, add, x, grad);
}

void batch_norm_backward_terms(const TypedRows& x, const BatchNormCoefficients& c,
                               const NormActivation& activation, const TypedRows& grad, Index first,
                               Index count, real* terms) {
  const Index columns = x.row_size();
  std::fill_n(terms, 2 * count * columns, real{0});
  const auto add = [&]<class Number>(auto relu, auto drops, Number) {
    RowReader<Number> from(x), gradient(grad);
    for (Index i = 0; i < count; ++i, terms += 2 * columns)
      add_row(BackwardRow<relu, drops, Number>(c, activation.dropout, from, gradient, first + i), columns,
              terms, terms + columns);
  };
  with_activation(activation, add, x, grad);
}

void batch_norm_backward_x(const TypedRows& x, const BatchNormCoefficients& c,
                           const NormActivation& activation, const TypedRows& grad,
                           std::span<const real> mean_g, std::span<const real> mean_gx, TypedRows dx) {
  const Index columns = x.row_size();
  const auto differentiate = [&]<class Number>(auto relu, auto drops, Number) {
    parallel_for(x.num_rows(), rows_at_once(columns), [&](Index begin, Index end) {
      RowReader<Number> from(x), gradient(grad);
      RowWriter<Number> to(dx);
      for (Index i = begin; i < end; ++i) {
        differentiate_row(BackwardRow<relu, drops, Number>(c, activation.dropout, from, gradient, i), columns,
                          mean_g.data(), mean_gx.data(), to.row(i));
        to.done(i);
      }
    });
  };
  with_activation(activation, differentiate, x, grad, dx);
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, batch_norm_rows,
             (const TypedRows& x, const BatchNormCoefficients& c, const NormActivation& activation,
              Index first, Index count, TypedNumbers y),
             (x, c, activation, first, count, y));
SAR_DISPATCH(void, batch_norm_backward_sums,
             (const TypedRows& x, const BatchNormCoefficients& c, const NormActivation& activation,
              const TypedRows& grad, std::span<double> sums),
             (x, c, activation, grad, sums));
SAR_DISPATCH(void, batch_norm_backward_terms,
             (const TypedRows& x, const BatchNormCoefficients& c, const NormActivation& activation,
              const TypedRows& grad, Index first, Index count, real* terms),
             (x, c, activation, grad, first, count, terms));
SAR_DISPATCH(void, batch_norm_backward_x,
             (const TypedRows& x, const BatchNormCoefficients& c, const NormActivation& activation,
              const TypedRows& grad, std::span<const real> mean_g, std::span<const real> mean_gx,
              TypedRows dx),
             (x, c, activation, grad, mean_g, mean_gx, dx));

#if SAR_COMPILED_ONCE

namespace sar { inline namespace SAR_PRECISION {

void batch_norm(const TypedRows& x, const BatchNormCoefficients& c, const NormActivation& activation,
                TypedRows y) {
  constexpr Index grain = 1 << 14;  // elements
  parallel_for(x.num_rows(), std::max<Index>(1, grain / std::max<Index>(x.row_size(), 1)),
               [&](Index begin, Index end) {
                 batch_norm_rows(x, c, activation, begin, end - begin, y.numbers(begin));
               });
}

BatchNormCoefficients::BatchNormCoefficients(Index columns)
    : center(columns), inv_std(columns), xhat_shift(columns), scale(columns), shift(columns) {}

void BatchNormCoefficients::set(Index j, double mean, double var, double eps, double weight, double bias) {
  const double inverse = 1 / std::sqrt(var + eps);
  center[j] = static_cast<real>(mean);
  const double rounded_off = mean - static_cast<double>(center[j]);
  inv_std[j] = static_cast<real>(inverse);
  xhat_shift[j] = static_cast<real>(-rounded_off * inverse);
  scale[j] = static_cast<real>(inverse * weight);
  shift[j] = static_cast<real>(bias - rounded_off * inverse * weight);
}
}}  // namespace sar

#endif
