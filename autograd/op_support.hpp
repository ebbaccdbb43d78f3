/// For authors of operations: helpers that reuse memory that no one else refers to.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/threads/mixed_precision.hpp>

#include <array>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// Returns `shape` with another last dimension.
inline Shape with_columns(const Shape& shape, Index columns) {
  std::array<Index, 4> extents{};
  for (int d = 0; d < shape.dims(); ++d) extents[d] = d + 1 < shape.dims() ? shape[d] : columns;
  return Shape(std::span<const Index>(extents.data(), shape.dims()));
}

/// Takes the value out of an operand that was passed by value. An operation that keeps the value for the
/// backward pass copies the handle first.
inline Tensor take_value(Variable& operand) {
  return std::exchange(operand.value(), Tensor());
}

/// The same for an operation that reads rows of several types.
inline TypedRows take_rows(Variable& operand) {
  TypedRows rows = operand.rows();
  operand = Variable();
  return rows;
}

/// Returns the type in which an operation that knows several stores its result.
[[nodiscard]] inline NumberType type_of_results() noexcept {
  return mixed_precision() ? NumberType::bfloat16 : NumberType::reals;
}

/// Returns the result of compute(x, out), in the memory of x if this is its only handle. `out` may be x.
template <class Compute>
Tensor compute_elementwise(Tensor x, const Compute& compute) {
  Tensor out = x.unique() ? x : Tensor(x.shape());
  compute(std::as_const(x), out);
  return out;
}

/// Adds the values that compute(grad, out, accumulate) writes to the gradient `to`; in the memory of `grad`
/// if this is its only handle and `to` is still undefined. `out` may be `grad`; both have the shape of `to`.
template <class Compute>
void pass_elementwise(Gradient& to, Tensor grad, const Compute& compute) {
  if (!to.defined() && grad.unique()) {
    Tensor out = std::move(grad);
    compute(std::as_const(out), out, false);
    to.add(std::move(out));
  } else {
    to.add([&](Tensor& out, bool accumulate) { compute(std::as_const(grad), out, accumulate); });
  }
}

}}  // namespace sar
