// SPDX-License-Identifier: MIT

/// Elementwise kernels, multithreaded.
///
/// With `accumulate`, a function adds to `out` instead of overwriting it. `out` may be one of the operands,
/// but must not overlap an operand in any other way. Functions throw ShapeError, with the shapes, if shapes
/// do not match.
#pragma once

#include <sar/core/tensor/tensor.hpp>

namespace sar { inline namespace SAR_PRECISION {

enum class BinaryOp { add, sub, mul, div };

/// out (+)= a op b with NumPy's broadcasting (see broadcast.hpp). broadcast(a, b) must broadcast to the shape
/// of out.
void binary(BinaryOp op, const Tensor& a, const Tensor& b, Tensor& out, bool accumulate = false);

/// out (+)= scale x + shift
void scale_shift(const Tensor& x, real scale, real shift, Tensor& out, bool accumulate = false);

/// A function y = f(x); p is the parameter of unary():
///
///     relu        max(x, 0)                      elu        x > 0 ? x : p (exp(x) - 1), p >= 0
///     leaky_relu  x > 0 ? x : p x, p >= 0        sigmoid    1 / (1 + exp(-x))
///     softplus    log(1 + exp(x))                silu       x / (1 + exp(-x))
///     gelu        x (1 + erf(x / sqrt(2))) / 2
///     gelu_tanh   x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
///     tanh, exp, log, sqrt, abs
///
/// NaN stays NaN.
enum class Unary {
  relu,
  leaky_relu,
  elu,
  sigmoid,
  softplus,
  tanh,
  exp,
  log,
  sqrt,
  abs,
  silu,
  gelu,
  gelu_tanh
};

/// out = f(x)
void unary(Unary op, const Tensor& x, Tensor& out, real parameter = 0);

/// Returns true if the backward pass computes f'(x) from y = f(x), and false if it needs x.
constexpr bool differentiates_from_output(Unary op) noexcept {
  switch (op) {
    case Unary::log:
    case Unary::abs:
    case Unary::silu:
    case Unary::gelu:
    case Unary::gelu_tanh:
      return false;
    case Unary::relu:
    case Unary::leaky_relu:
    case Unary::elu:
    case Unary::sigmoid:
    case Unary::softplus:
    case Unary::tanh:
    case Unary::exp:
    case Unary::sqrt:
      break;
  }
  return true;
}

/// out (+)= grad f'(x), where `kept` is f(x) if differentiates_from_output(op), and x otherwise. At 0, relu
/// and abs have slope 0, leaky_relu and elu their left-hand slope, sqrt an infinite slope.
void unary_backward(Unary op, const Tensor& kept, const Tensor& grad, Tensor& out, bool accumulate = false,
                    real parameter = 0);

/// out = min(max(x, low), high). NaN stays NaN.
void clamp(const Tensor& x, real low, real high, Tensor& out);

/// out (+)= grad where low <= x <= high, and (+)= 0 elsewhere
void clamp_backward(const Tensor& x, real low, real high, const Tensor& grad, Tensor& out,
                    bool accumulate = false);

/// out = a where condition is not 0, and b elsewhere. All four have the same shape.
void select(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& out);

}}  // namespace sar
