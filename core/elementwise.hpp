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
///     relu        max(x, 0)                      elu      x > 0 ? x : p (exp(x) - 1), p >= 0
///     leaky_relu  x > 0 ? x : p x, p >= 0        sigmoid  1 / (1 + exp(-x))
///     softplus    log(1 + exp(x))                tanh, exp, log
enum class Unary { relu, leaky_relu, elu, sigmoid, softplus, tanh, exp, log };

/// out = f(x)
void unary(Unary op, const Tensor& x, Tensor& out, real parameter = 0);

/// True when f'(x) is computed from y = f(x), so that x need not be kept; false (log only) when from x.
constexpr bool differentiates_from_output(Unary op) noexcept {
  return op != Unary::log;
}

/// out (+)= grad f'(x), where `kept` is f(x), or x when not differentiates_from_output(op). relu has slope 0
/// at 0, leaky_relu and elu their left-hand slope.
void unary_backward(Unary op, const Tensor& kept, const Tensor& grad, Tensor& out, bool accumulate = false,
                    real parameter = 0);

}  // namespace sar
