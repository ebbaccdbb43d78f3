#include <sar/core/layer_norm.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/reduce.hpp>

#include <cmath>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr Index row_grain = 256;

struct RowStatistics {
  double mean;
  double inv_std;
};

RowStatistics row_statistics(const real* row, Index columns, double eps) {
  const auto n = static_cast<double>(columns);
  double mean = 0;
  for (Index j = 0; j < columns; ++j) mean += row[j];
  mean /= n;
  double m2 = 0;
  for (Index j = 0; j < columns; ++j) m2 += (row[j] - mean) * (row[j] - mean);
  return {mean, 1 / std::sqrt(m2 / n + eps)};
}

real normalized(real x, const RowStatistics& s) {
  return static_cast<real>((x - s.mean) * s.inv_std);
}

}  // namespace

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y) {
  const Index columns = x.row_size();
  parallel_for(x.num_rows(), row_grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const RowStatistics s = row_statistics(x.row(i), columns, eps);
      for (Index j = 0; j < columns; ++j) {
        const real xhat = normalized(x.row(i)[j], s);
        y.row(i)[j] = weight.defined() ? xhat * weight.data()[j] + bias.data()[j] : xhat;
      }
    }
  });
}

void layer_norm_backward_sums(const Tensor& x, const Tensor& grad, double eps, std::span<double> sums) {
  const Index columns = x.row_size();
  const auto add_rows = [&](Index begin, Index end, double* sum_gx) {
    double* sum_g = sum_gx + columns;
    for (Index i = begin; i < end; ++i) {
      const RowStatistics s = row_statistics(x.row(i), columns, eps);
      for (Index j = 0; j < columns; ++j) {
        const double g = grad.row(i)[j];
        sum_gx[j] += g * normalized(x.row(i)[j], s);
        sum_g[j] += g;
      }
    }
  };
  sum_row_blocks(x.num_rows(), 4 * columns, add_rows, sums);
}

void layer_norm_backward_x(const Tensor& x, const Tensor& weight, double eps, Tensor& g) {
  const Index columns = x.row_size();
  parallel_for(x.num_rows(), row_grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const RowStatistics s = row_statistics(x.row(i), columns, eps);
      real* h = g.row(i);
      double mean_h = 0, mean_hx = 0;
      for (Index j = 0; j < columns; ++j) {
        if (weight.defined()) h[j] *= weight.data()[j];
        mean_h += h[j];
        mean_hx += static_cast<double>(h[j]) * normalized(x.row(i)[j], s);
      }
      mean_h /= static_cast<double>(columns);
      mean_hx /= static_cast<double>(columns);
      for (Index j = 0; j < columns; ++j)
        h[j] = static_cast<real>(s.inv_std * (h[j] - mean_h - mean_hx * normalized(x.row(i)[j], s)));
    }
  });
}

}  // namespace sar
