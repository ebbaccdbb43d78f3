#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/reduce.hpp>
#include <sar/nn/layer_norm.hpp>

#include <cmath>
#include <utility>
#include <vector>

namespace sar {
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

LayerNorm::LayerNorm(Index features, double eps, bool affine) : features_(features), eps_(eps) {
  require<InputError>(features > 0 && eps >= 0, "LayerNorm over ", features, " features with eps ", eps);
  if (!affine) return;
  weight_ = Variable(Tensor::full({features}, 1), true);
  bias_ = Variable(Tensor::zeros({features}), true);
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
}

Variable LayerNorm::operator()(const Variable& x) const {
  require<ShapeError>(x.shape().dims() == 2 && x.value().row_size() == features_, "LayerNorm over ",
                      features_, " features got a tensor of shape ", x.shape());
  const Tensor input = x.value();
  const Tensor weight = weight_.value();
  const Tensor bias = bias_.value();
  const Index columns = features_;
  const double eps = eps_;
  Tensor y(x.shape());
  parallel_for(input.num_rows(), row_grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const RowStatistics s = row_statistics(input.row(i), columns, eps);
      for (Index j = 0; j < columns; ++j) {
        const real xhat = normalized(input.row(i)[j], s);
        y.row(i)[j] = weight.defined() ? xhat * weight.data()[j] + bias.data()[j] : xhat;
      }
    }
  });
  if (!recording({&x, &weight_, &bias_})) return y;

  return record(std::move(y), [input, weight, columns, eps, to_x = x.gradient(),
                               to_weight = weight_.gradient(), to_bias = bias_.gradient()](Tensor grad) {
    if (to_weight != nullptr) {
      const auto width = static_cast<std::size_t>(columns);
      std::vector<double> sums(2 * width);
      sum_row_blocks(
          input.num_rows(), 4 * columns,
          [&](Index begin, Index end, double* sum_gx) {
            double* sum_g = sum_gx + columns;
            for (Index i = begin; i < end; ++i) {
              const RowStatistics s = row_statistics(input.row(i), columns, eps);
              for (Index j = 0; j < columns; ++j) {
                const double g = grad.row(i)[j];
                sum_gx[j] += g * normalized(input.row(i)[j], s);
                sum_g[j] += g;
              }
            }
          },
          sums);
      Tensor weight_grad(weight.shape()), bias_grad(weight.shape());
      for (std::size_t j = 0; j < width; ++j) {
        weight_grad.data()[j] = static_cast<real>(sums[j]);
        bias_grad.data()[j] = static_cast<real>(sums[width + j]);
      }
      to_weight->add(std::move(weight_grad));
      to_bias->add(std::move(bias_grad));
    }
    if (to_x == nullptr) return;
    // dx = inv_std (h - mean_j h - xhat mean_j(h xhat)) with h = g * weight
    Tensor dx = grad.unique() ? std::move(grad) : grad.clone();
    parallel_for(input.num_rows(), row_grain, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const RowStatistics s = row_statistics(input.row(i), columns, eps);
        real* h = dx.row(i);
        double mean_h = 0, mean_hx = 0;
        for (Index j = 0; j < columns; ++j) {
          if (weight.defined()) h[j] *= weight.data()[j];
          mean_h += h[j];
          mean_hx += static_cast<double>(h[j]) * normalized(input.row(i)[j], s);
        }
        mean_h /= static_cast<double>(columns);
        mean_hx /= static_cast<double>(columns);
        for (Index j = 0; j < columns; ++j)
          h[j] = static_cast<real>(s.inv_std * (h[j] - mean_h - mean_hx * normalized(input.row(i)[j], s)));
      }
    });
    to_x->add(std::move(dx));
  });
}

}  // namespace sar
