// The forward pass keeps no statistics. The backward pass goes over x and the gradient twice, once for the
// gradients of weight and bias and once for that of x, and computes the statistics of each row again.
#include <sar/autograd/layer_norm.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/layer_norm.hpp>

#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  const Index columns = x.value().row_size();
  require<ShapeError>(
      x.shape().dims() == 2 && weight.defined() == bias.defined() &&
          (!weight.defined() || (weight.shape() == Shape{columns} && bias.shape() == Shape{columns})),
      "layer_norm of a tensor of shape ", x.shape(), " with a weight of shape ", weight.shape(),
      " and a bias of shape ", bias.shape());
  Tensor y(x.shape());
  layer_norm(x.value(), weight.value(), bias.value(), eps, y);
  if (!recording({&x, &weight, &bias})) return y;
  return record(std::move(y), [kept_x = x.value(), kept_weight = weight.value(), eps, dx = x.gradient(),
                               dweight = weight.gradient(), dbias = bias.gradient()](Tensor grad) {
    // sums: the gradient of weight, then that of bias
    if (dweight != nullptr || dbias != nullptr) {
      const Index width = kept_x.row_size();
      std::vector<double> sums(2 * width);
      layer_norm_backward_sums(kept_x, grad, eps, sums);
      if (dweight != nullptr) dweight->add(Tensor::from({width}, std::span(sums).first(width)));
      if (dbias != nullptr) dbias->add(Tensor::from({width}, std::span(sums).last(width)));
    }
    if (dx == nullptr) return;
    Tensor result = grad.unique() ? std::move(grad) : grad.clone();
    layer_norm_backward_x(kept_x, kept_weight, eps, result);
    dx->add(std::move(result));
  });
}

}}  // namespace sar
