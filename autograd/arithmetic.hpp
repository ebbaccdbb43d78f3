// SPDX-License-Identifier: MIT

/// Arithmetic with broadcasting by NumPy's rules: equal shapes, a row [D] or [1, D], a column [N, 1], a
/// scalar [1], and the same with 3 and 4 dimensions. A vector is always a row, even if its length is the
/// number of rows; use scale_rows() for a column [N]. ops.hpp says what holds for all operations.
#pragma once

#include <sar/autograd/variable.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Variable add(Variable a, Variable b);  ///< a + b; keeps nothing
Variable sub(Variable a, Variable b);  ///< a - b; keeps nothing
Variable mul(Variable a, Variable b);  ///< a * b; keeps each operand if the other requires a gradient
Variable div(Variable a, Variable b);  ///< a / b; keeps b, and the result if b requires a gradient

/// Returns scale x + shift for constants. Keeps nothing.
Variable scale_shift(Variable x, real scale, real shift = 0);

/// Returns y[i] = column[i] x[i] for a constant column of shape [N] or [N, 1]. Keeps the column.
Variable scale_rows(Variable x, const Tensor& column);

/// Returns a where the condition is not 0 (or is NaN), and b elsewhere; the three are broadcast. The elements
/// that are not chosen do not affect the result or the gradients, even if they are NaN or infinite. Keeps the
/// condition.
Variable where(const Tensor& condition, Variable a, Variable b);

inline Variable operator+(Variable a, Variable b) {
  return add(std::move(a), std::move(b));
}
inline Variable operator-(Variable a, Variable b) {
  return sub(std::move(a), std::move(b));
}
inline Variable operator*(Variable a, Variable b) {
  return mul(std::move(a), std::move(b));
}
inline Variable operator/(Variable a, Variable b) {
  return div(std::move(a), std::move(b));
}
inline Variable operator-(Variable x) {
  return scale_shift(std::move(x), -1);
}
inline Variable operator+(Variable x, real c) {
  return scale_shift(std::move(x), 1, c);
}
inline Variable operator+(real c, Variable x) {
  return scale_shift(std::move(x), 1, c);
}
inline Variable operator-(Variable x, real c) {
  return scale_shift(std::move(x), 1, -c);
}
inline Variable operator-(real c, Variable x) {
  return scale_shift(std::move(x), -1, c);
}
inline Variable operator*(Variable x, real c) {
  return scale_shift(std::move(x), c);
}
inline Variable operator*(real c, Variable x) {
  return scale_shift(std::move(x), c);
}
inline Variable operator/(Variable x, real c) {
  return div(std::move(x), Variable(Tensor::full({1}, c)));
}
inline Variable operator/(real c, Variable x) {
  return div(Variable(Tensor::full({1}, c)), std::move(x));
}

/// For authors of operations: returns a + b, either of which may be undefined, broadcast to `shape`.
Variable tangent_sum(const Variable& a, const Variable& b, const Shape& shape);

/// For authors of operations: applies an operation that is linear in a and in b. By the product rule, its
/// tangent is f(da, b) + f(a, db).
template <class F>
Variable apply_bilinear(const Variable& a, const Variable& b, const F& f) {
  const Variable x = a.primal(), z = b.primal();
  Variable y = f(x, z);
  const Variable of_a = a.is_dual() ? f(a.tangent(), z) : Variable();
  const Variable of_b = b.is_dual() ? f(x, b.tangent()) : Variable();
  return make_dual(y, tangent_sum(of_a, of_b, y.shape()));
}
}}  // namespace sar
