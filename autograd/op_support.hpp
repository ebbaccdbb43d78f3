/// For authors of operations: how to work in memory that nobody else needs.
#pragma once

#include <sar/autograd/variable.hpp>

#include <utility>

namespace sar::inline SAR_PRECISION {

/// Takes the value out of an operand that was passed by value. An operation that keeps the value for the
/// backward pass copies the handle before.
inline Tensor take_value(Variable& operand) {
  return std::exchange(operand.value(), Tensor());
}

/// The result of compute(x, out): in the memory of x when this is the only handle to it. `out` may be x.
template <class Compute>
Tensor compute_elementwise(Tensor x, const Compute& compute) {
  Tensor out = x.unique() ? x : Tensor(x.shape());
  compute(std::as_const(x), out);
  return out;
}

/// Adds what compute(grad, out, accumulate) writes to the gradient `to`: in the memory of `grad` when nobody
/// else refers to it and nothing has arrived yet. `out` may be `grad`; both have the shape of `to`.
template <class Compute>
void pass_elementwise(Gradient& to, Tensor grad, const Compute& compute) {
  if (!to.value().defined() && grad.unique()) {
    Tensor out = std::move(grad);
    compute(std::as_const(out), out, false);
    to.add(std::move(out));
  } else {
    to.add([&](Tensor& out, bool accumulate) { compute(std::as_const(grad), out, accumulate); });
  }
}

}  // namespace sar
