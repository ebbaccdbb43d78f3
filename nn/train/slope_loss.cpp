// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/train/slope_loss.hpp>

#include <cstddef>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

Tensor gradient_or_zeros(const Variable& x) {
  const Tensor gradient = x.grad();
  return gradient.defined() ? gradient : Tensor::zeros(x.shape());
}

}  // namespace

ValueAndSlopes value_and_slopes(const SlopeFunction& f, const std::vector<Tensor>& inputs) {
  OuterGradients dropped(/*wanted=*/false);  // those of parameters
  const OuterGradients::Scope scope(dropped);
  std::vector<Variable> x;
  for (const Tensor& input : inputs) x.emplace_back(input, true);
  Tape tape;
  const Variable y = f(x);
  ValueAndSlopes result{.value = y.value(), .slopes = {}};
  if (!x.empty() && y.requires_grad()) tape.backward(y, Tensor::full(y.shape(), 1));
  for (const Variable& input : x) result.slopes.push_back(gradient_or_zeros(input));
  return result;
}

double backward_slope_loss(const SlopeFunction& f, const std::vector<Tensor>& inputs, const SlopeLoss& loss) {
  ValueAndSlopes found = value_and_slopes(f, inputs);
  const Variable value(std::move(found.value), true);
  std::vector<Variable> slopes;
  for (Tensor& slope : found.slopes) slopes.emplace_back(std::move(slope), true);
  double result = 0;
  {
    Tape tape;
    const Variable total = loss(value, slopes);
    result = static_cast<double>(total.value().item());
    tape.backward(total);
  }
  std::vector<Variable> x;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    x.push_back(make_dual(Variable(inputs[k]), Variable(gradient_or_zeros(slopes[k]))));
  Tape tape;
  const Variable y = f(x);
  Variable total = sum(y.primal() * Variable(gradient_or_zeros(value)));
  if (y.is_dual()) total = std::exchange(total, {}) + sum(y.tangent());
  tape.backward(total);
  return result;
}

}}  // namespace sar
