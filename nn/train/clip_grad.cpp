// SPDX-License-Identifier: MIT

// clip_grad_norm() reads all gradients once, with sums in double precision, and writes new ones only if
// the norm is too large.
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/reduce.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/train/clip_grad.hpp>

#include <cmath>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Replaces each gradient by what change(gradient, out) writes; `out` may alias the gradient.
void change_gradients(const std::vector<Variable>& parameters,
                      FunctionRef<void(const Tensor& gradient, Tensor& out)> change) {
  for (const Variable& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    const Tensor gradient = parameter.grad();
    Tensor out(gradient.shape());
    change(gradient, out);
    parameter.gradient()->replace(std::move(out));
  }
}

}  // namespace

double clip_grad_norm(Module& module, double max_norm) {
  require<InputError>(max_norm >= 0, "clip_grad_norm: max_norm is ", max_norm, ", expected 0 or more");
  const std::vector<Variable> parameters = module.parameters();
  double squares = 0;
  for (const Variable& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (gradient.defined()) squares += sum_squares(gradient);
  }
  const double norm = std::sqrt(squares);
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return norm;  // false for NaN, which must spread
  change_gradients(parameters, [&](const Tensor& gradient, Tensor& out) {
    scale_shift(gradient, static_cast<real>(factor), 0, out);
  });
  return norm;
}

void clip_grad_value(Module& module, double clip_value) {
  require<InputError>(clip_value >= 0, "clip_grad_value: clip_value is ", clip_value, ", expected 0 or more");
  const auto limit = static_cast<real>(clip_value);
  change_gradients(module.parameters(),
                   [&](const Tensor& gradient, Tensor& out) { clamp(gradient, -limit, limit, out); });
}

}}  // namespace sar
