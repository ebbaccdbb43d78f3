// SPDX-License-Identifier: MIT

/// Dual variables: derivatives along a direction, in forward mode.
///
/// A dual variable has a value x and a tangent t. Operations on it return the value y = f(x) and the tangent
///
///     dy = d f(x + eps t) / d eps at eps = 0
///
/// The tangent is computed by differentiable operations, so a tape records both, and a backward pass from a
/// function of the tangent gives second derivatives. With a loss L(E, F) of an energy E and forces F =
/// -dE/dx, for instance, and with constants a = dL/dE and v = dL/dF,
///
///     dL/dtheta = d/dtheta (a E + tangent of E),    x with the tangent -v
///
/// Operations with a tangent say nothing about it. An operation without one throws InputError with its name
/// (refuse_tangents() in tape.hpp), on all ranks if it is collective.
#pragma once

#include <sar/autograd/variable.hpp>

#include <initializer_list>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns x with a tangent, as torch.autograd.forward_ad.make_dual() does. It is the same variable:
/// gradients of x arrive in x, and those of the tangent in `tangent`. An undefined tangent is that of a
/// constant: x is returned as it is. Throws ShapeError unless both have the same shape, InputError if one of
/// them is a dual variable.
///
/// @code
/// const Variable x(Tensor::full({3}, 2));
/// const Variable w(Tensor::full({3}, 5), /*requires_grad=*/true);
/// Tape tape;
/// const Variable y = make_dual(x, Variable(Tensor::full({3}, 1))) * x * w;
/// tape.backward(sum(y.tangent()));  // y.tangent() = 2 x w is 20; w.grad() = 2 x
/// @endcode
Variable make_dual(const Variable& x, const Variable& tangent);

/// For authors of operations: whether one of the inputs is a dual variable.
[[nodiscard]] inline bool any_dual(std::initializer_list<const Variable*> inputs) noexcept {
  for (const Variable* x : inputs)
    if (x->is_dual()) return true;
  return false;
}

/// For authors of operations: returns the tangent of x, or zeros as a constant.
Variable tangent_or_zeros(const Variable& x);

/// For authors of operations: applies an operation that is linear in x to the value and to the tangent.
template <class F>
Variable apply_linear(const Variable& x, const F& f) {
  return make_dual(f(x.primal()), f(x.tangent()));
}

}}  // namespace sar
