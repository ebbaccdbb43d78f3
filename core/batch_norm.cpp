#include <sar/core/batch_norm.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/reduce.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <sar/core/isa_begin.hpp>

namespace {

/// Rows that a kernel takes at once: what it reads and writes of them stays in the second-level cache.
Index rows_at_once(Index columns) {
  return std::max<Index>(1, (1 << 14) / columns);
}

/// row *= the factors of the dropout.
void drop(const DropoutBits& dropout, Index i, Index columns, real* row) {
  const std::uint32_t* words = dropout.words(i);
  const std::uint32_t bit = 1u << i % DropoutBits::rows_of_word;
  const real scale = dropout.keep_scale();
  for (Index j = 0; j < columns; ++j) row[j] *= (words[j] & bit) != 0 ? scale : real{0};
}

/// The coefficients of all columns.
struct Columns {
  const real *center, *scale, *shift;
  real lowest;  // of the result: 0 with ReLU
  Index count;
};

void normalize_row(const Columns c, const real* from, real* to) {
#pragma GCC ivdep
  for (Index j = 0; j < c.count; ++j) {
    const real value = (from[j] - c.center[j]) * c.scale[j] + c.shift[j];
    to[j] = value < c.lowest ? c.lowest : value;
  }
}

/// The same with dropout: `bit` of each word tells what is kept.
void normalize_row(const Columns c, const std::uint32_t* words, std::uint32_t bit, real kept,
                   const real* from, real* to) {
#pragma GCC ivdep
  for (Index j = 0; j < c.count; ++j) {
    const real value = (from[j] - c.center[j]) * c.scale[j] + c.shift[j];
    to[j] = (value < c.lowest ? c.lowest : value) * ((words[j] & bit) != 0 ? kept : real{0});
  }
}

}  // namespace

void batch_norm_rows(const Tensor& x, const BatchNormCoefficients& c, const NormActivation& activation,
                     Index first, Index count, real* y) {
  const Columns columns{c.center.data(), c.scale.data(), c.shift.data(),
                        activation.relu ? real{0} : -std::numeric_limits<real>::infinity(), x.row_size()};
  const DropoutBits& dropout = activation.dropout;
  for (Index i = 0; i < count; ++i) {
    const Index row = first + i;
    real* to = y + i * columns.count;
    if (dropout) {
      normalize_row(columns, dropout.words(row), 1u << row % DropoutBits::rows_of_word, dropout.keep_scale(),
                    x.row(row), to);
    } else {
      normalize_row(columns, x.row(row), to);
    }
  }
}

void batch_norm_backward_sums(const Tensor& x, const BatchNormCoefficients& c,
                              const NormActivation& activation, const Tensor& grad, Tensor& g,
                              std::span<double> sums) {
  const Index columns = x.row_size();
  const auto add_rows = [&](Index block_begin, Index block_end, double* sum_g) {
    double* sum_gx = sum_g + columns;
    for (Index i = block_begin; i < block_end; ++i) {
      const real* from = x.row(i);
      real* to = g.row(i);
      if (activation.relu) {
        const real* incoming = grad.row(i);
        for (Index j = 0; j < columns; ++j)
          to[j] = (from[j] - c.center[j]) * c.scale[j] + c.shift[j] > 0 ? incoming[j] : 0;
      }
      if (activation.dropout) drop(activation.dropout, i, columns, to);
      for (Index j = 0; j < columns; ++j) {
        sum_g[j] += to[j];
        sum_gx[j] += static_cast<double>(to[j]) * ((from[j] - c.center[j]) * c.inv_std[j] + c.xhat_shift[j]);
      }
    }
  };
  sum_row_blocks(x.num_rows(), 4 * columns, add_rows, sums);
}

void batch_norm_backward_x(const Tensor& x, const BatchNormCoefficients& c, const Tensor& g,
                           std::span<const real> mean_g, std::span<const real> mean_gx, Tensor& dx) {
  const Index columns = x.row_size();
  parallel_for(x.num_rows(), rows_at_once(columns), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const real* from = x.row(i);
      const real* before = g.row(i);
      real* to = dx.row(i);
      for (Index j = 0; j < columns; ++j) {
        const real xhat = (from[j] - c.center[j]) * c.inv_std[j] + c.xhat_shift[j];
        to[j] = c.scale[j] * (before[j] - mean_g[j] - xhat * mean_gx[j]);
      }
    }
  });
}

#include <sar/core/isa_end.hpp>

SAR_DISPATCH(void, batch_norm_rows,
             (const Tensor& x, const BatchNormCoefficients& c, const NormActivation& activation, Index first,
              Index count, real* y),
             (x, c, activation, first, count, y));
SAR_DISPATCH(void, batch_norm_backward_sums,
             (const Tensor& x, const BatchNormCoefficients& c, const NormActivation& activation,
              const Tensor& grad, Tensor& g, std::span<double> sums),
             (x, c, activation, grad, g, sums));
SAR_DISPATCH(void, batch_norm_backward_x,
             (const Tensor& x, const BatchNormCoefficients& c, const Tensor& g, std::span<const real> mean_g,
              std::span<const real> mean_gx, Tensor& dx),
             (x, c, g, mean_g, mean_gx, dx));

#if SAR_COMPILED_ONCE
namespace sar::inline SAR_PRECISION {

void batch_norm(const Tensor& x, const BatchNormCoefficients& c, const NormActivation& activation,
                Tensor& y) {
  constexpr Index grain = 1 << 14;  // elements
  parallel_for(x.num_rows(), std::max<Index>(1, grain / std::max<Index>(x.row_size(), 1)),
               [&](Index begin, Index end) {
                 batch_norm_rows(x, c, activation, begin, end - begin, y.row(begin));
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

}  // namespace sar
#endif
