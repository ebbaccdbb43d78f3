// SPDX-License-Identifier: MIT

// The forward pass keeps no statistics. The backward pass goes over x and the gradient twice, once for the
// gradients of weight and bias and once for that of x, and computes the statistics of each row again.
#include <sar/autograd/activations.hpp>
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/dual.hpp>
#include <sar/autograd/layer_norm.hpp>
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/layer_norm.hpp>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// sums += those of layer_norm_backward_sums(), of rows of several types some thousand at a time.
void add_backward_sums(const TypedRows& x, const TypedRows& grad, double eps, std::span<double> sums) {
  if (x.is_real() && grad.is_real()) return layer_norm_backward_sums(x.reals(), grad.reals(), eps, sums);
  constexpr Index at_once = 1 << 13;
  std::vector<double> of_part(sums.size());
  for (Index begin = 0; begin < x.num_rows(); begin += at_once) {
    const Index end = std::min(x.num_rows(), begin + at_once);
    layer_norm_backward_sums(real_rows(x, begin, end), real_rows(grad, begin, end), eps, of_part);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += of_part[i];
  }
}

/// With z = (x - mean) r, r = 1 / sqrt(var + eps) and means over a row:
///
///     dz = r (dx - mean(dx) - z mean(z dx))        dy = dz weight + z dweight + dbias
Variable layer_norm_of_dual(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  const auto row_mean = [](const Variable& rows) { return mean(rows, ReduceDim::columns); };
  const Variable value = x.primal(), y = layer_norm(value, weight.primal(), bias.primal(), eps);
  const Variable deviation = value - row_mean(value);
  const Variable root = sqrt(row_mean(deviation * deviation) + static_cast<real>(eps));
  const Variable z = deviation / root;
  Variable tangent = bias.tangent();
  if (weight.is_dual()) tangent = tangent_sum(z * weight.tangent(), tangent, y.shape());
  if (x.is_dual()) {
    const Variable dx = x.tangent();
    Variable dz = (dx - row_mean(dx) - z * row_mean(z * dx)) / root;
    if (weight.defined()) dz = dz * weight.primal();
    tangent = tangent_sum(dz, tangent, y.shape());
  }
  return make_dual(y, tangent_sum(tangent, {}, y.shape()));
}

}  // namespace

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  const Index columns = x.shape().row_size();
  require<ShapeError>(
      x.shape().dims() == 2 && weight.defined() == bias.defined() &&
          (!weight.defined() || (weight.shape() == Shape{columns} && bias.shape() == Shape{columns})),
      "layer_norm of a tensor of shape ", x.shape(), " with a weight of shape ", weight.shape(),
      " and a bias of shape ", bias.shape());
  if (any_dual({&x, &weight, &bias})) return layer_norm_of_dual(x, weight, bias, eps);
  TypedRows y(x.shape(), elementwise_type(x.type()));
  on_real_rows(
      y, false,
      [&](Index, Tensor& out, const Tensor& rows) {
        layer_norm(rows, weight.value(), bias.value(), eps, out);
      },
      x.rows());
  if (!recording({&x, &weight, &bias})) return y;
  return record(std::move(y), [kept_x = x.rows(), kept_weight = weight.value(), eps, dx = x.gradient(),
                               dweight = weight.gradient(), dbias = bias.gradient(),
                               sums_of_ranks = rank_sums()](TypedRows grad) {
    // sums: the gradient of weight, then that of bias
    if (sums_of_ranks != nullptr && (dweight != nullptr || dbias != nullptr)) {
      const Tensor g = grad.to_tensor();
      Tensor product(g.shape());
      layer_norm(kept_x.to_tensor(), Tensor(), Tensor(), eps, product);
      binary(BinaryOp::mul, product, g, product);
      if (dweight != nullptr) add_row_products(*sums_of_ranks, nullptr, dweight, product, product, false);
      if (dbias != nullptr) add_row_products(*sums_of_ranks, nullptr, dbias, g, g, false);
    } else if (dweight != nullptr || dbias != nullptr) {
      const Index width = kept_x.row_size();
      std::vector<double> sums(2 * width);
      add_backward_sums(kept_x, grad, eps, sums);
      if (dweight != nullptr) dweight->add(Tensor::from({width}, std::span(sums).first(width)));
      if (dbias != nullptr) dbias->add(Tensor::from({width}, std::span(sums).last(width)));
    }
    if (dx == nullptr) return;
    TypedRows result = grad.unique() ? std::move(grad) : grad.clone();
    on_real_rows(
        result, true,
        [&](Index, Tensor& g, const Tensor& rows) { layer_norm_backward_x(rows, kept_weight, eps, g); },
        kept_x);
    dx->add(std::move(result));
  });
}

}}  // namespace sar
