#include <sar/core/batch_norm.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/reduce.hpp>

#include <algorithm>
#include <cmath>

#include <sar/core/isa_begin.hpp>

namespace {

/// Rows that a kernel takes at once: what it reads and writes of them stays in the second-level cache.
Index rows_at_once(Index columns) {
  return std::max<Index>(1, (1 << 14) / columns);
}

/// The mask's factors of rows [begin, end).
void draw(const NormActivation& activation, Index begin, Index end, Index columns, Array<real>& factors) {
  factors.resize((end - begin) * columns);
  activation.mask->factors(activation.row_ids.subspan(begin, end - begin), columns, factors.data());
}

}  // namespace

void batch_norm(const Tensor& x, const BatchNormCoefficients& c, const NormActivation& activation,
                Tensor& y) {
  const Index columns = x.row_size();
  parallel_for(x.num_rows(), rows_at_once(columns), [&](Index begin, Index end) {
    Array<real> factors;
    if (activation.mask) draw(activation, begin, end, columns, factors);
    for (Index i = begin; i < end; ++i) {
      const real* from = x.row(i);
      real* to = y.row(i);
      for (Index j = 0; j < columns; ++j) to[j] = (from[j] - c.center[j]) * c.scale[j] + c.shift[j];
      if (activation.relu)
        for (Index j = 0; j < columns; ++j) to[j] = to[j] < 0 ? 0 : to[j];
      if (activation.mask) {
        const real* factor = factors.data() + (i - begin) * columns;
        for (Index j = 0; j < columns; ++j) to[j] *= factor[j];
      }
    }
  });
}

void batch_norm_backward_sums(const Tensor& x, const BatchNormCoefficients& c,
                              const NormActivation& activation, const Tensor& grad, Tensor& g,
                              std::span<double> sums) {
  const Index columns = x.row_size();
  const auto add_rows = [&](Index block_begin, Index block_end, double* sum_g) {
    double* sum_gx = sum_g + columns;
    Array<real> factors;
    for (Index begin = block_begin; begin < block_end; begin += rows_at_once(columns)) {
      const Index end = std::min(block_end, begin + rows_at_once(columns));
      if (activation.mask) draw(activation, begin, end, columns, factors);
      for (Index i = begin; i < end; ++i) {
        const real* from = x.row(i);
        real* to = g.row(i);
        if (activation.relu) {
          const real* incoming = grad.row(i);
          for (Index j = 0; j < columns; ++j)
            to[j] = (from[j] - c.center[j]) * c.scale[j] + c.shift[j] > 0 ? incoming[j] : 0;
        }
        if (activation.mask) {
          const real* factor = factors.data() + (i - begin) * columns;
          for (Index j = 0; j < columns; ++j) to[j] *= factor[j];
        }
        for (Index j = 0; j < columns; ++j) {
          sum_g[j] += to[j];
          sum_gx[j] +=
              static_cast<double>(to[j]) * ((from[j] - c.center[j]) * c.inv_std[j] + c.xhat_shift[j]);
        }
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

SAR_DISPATCH(void, batch_norm,
             (const Tensor& x, const BatchNormCoefficients& c, const NormActivation& activation, Tensor& y),
             (x, c, activation, y));
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
