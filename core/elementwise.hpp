/// Elementwise kernels, cut into blocks over the threads.
///
/// `accumulate` adds to `out` instead of overwriting it. `out` may be an operand of its shape, but must not
/// overlap one in any other way. Shapes that do not fit throw ShapeError naming them.
#pragma once

#include <sar/core/tensor.hpp>

namespace sar::inline SAR_PRECISION {

enum class BinaryOp { add, sub, mul, div };

/// out (+)= a op b with NumPy's broadcasting (see broadcast.hpp); broadcast(a, b) must
/// broadcast to the shape of out.
void binary(BinaryOp op, const Tensor& a, const Tensor& b, Tensor& out, bool accumulate = false);

/// out (+)= scale x + shift
void scale_shift(const Tensor& x, real scale, real shift, Tensor& out, bool accumulate = false);

/// y = f(x), with p the parameter of `unary`:
///
///     relu        max(x, 0)                      elu        x > 0 ? x : p (exp(x) - 1), p >= 0
///     leaky_relu  x > 0 ? x : p x, p >= 0        sigmoid    1 / (1 + exp(-x))
///     softplus    log(1 + exp(x))                silu       x / (1 + exp(-x))
///     gelu        x (1 + erf(x / sqrt(2))) / 2   gelu_tanh  x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
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

/// True when f'(x) is computed from y = f(x), so that x need not be kept; false when from x.
constexpr bool differentiates_from_output(Unary op) noexcept {
  switch (op) {
    case Unary::log:
    case Unary::abs:
    case Unary::silu:
    case Unary::gelu:
    case Unary::gelu_tanh:
      return false;
    default:
      return true;
  }
}

/// out (+)= grad f'(x), where `kept` is f(x), or x when not differentiates_from_output(op). relu and abs have
/// slope 0 at 0, leaky_relu and elu their left-hand slope, sqrt an infinite one.
void unary_backward(Unary op, const Tensor& kept, const Tensor& grad, Tensor& out, bool accumulate = false,
                    real parameter = 0);

/// out = min(max(x, low), high); NaN stays NaN.
void clamp(const Tensor& x, real low, real high, Tensor& out);

/// out (+)= grad where low <= x <= high, and (+)= 0 elsewhere
void clamp_backward(const Tensor& x, real low, real high, const Tensor& grad, Tensor& out,
                    bool accumulate = false);

/// out = a where condition is not 0, b elsewhere; all of one shape.
void select(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& out);

}  // namespace sar
