// SPDX-License-Identifier: MIT

/// For authors of operations: helpers that reuse memory that no one else refers to.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/rows/row_access.hpp>
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
/// backward pass copies the handle first. Operations that read rows of several types call take_rows().
inline Tensor take_value(Variable& operand) {
  return std::exchange(operand.value(), Tensor());
}

/// Returns the type in which an operation that knows several stores its result.
[[nodiscard]] inline NumberType type_of_results() noexcept {
  return mixed_precision() ? NumberType::bfloat16 : NumberType::reals;
}

/// Returns the type of an elementwise result of rows of this type. Outside of mixed precision these are
/// reals: rows that are given in bfloat16 do not round what is computed from them.
[[nodiscard]] inline NumberType elementwise_type(NumberType type) noexcept {
  return mixed_precision() ? type : NumberType::reals;
}

/// Returns rows for an elementwise result: x itself if this is its only handle, otherwise new ones of its
/// shape and type.
inline TypedRows rows_for_result(const TypedRows& x) {
  return x.unique() ? x : TypedRows(x.shape(), x.type());
}

/// Returns the result of compute(first row, out, x) in elementwise_type() of x, in the memory of x if this is
/// its only handle and has this type. `out` may be x. For blocks of rows where they are not reals
/// (core/rows/row_access.hpp).
template <class Compute>
TypedRows compute_elementwise(TypedRows x, const Compute& compute) {
  const NumberType type = elementwise_type(x.type());
  TypedRows out = x.type() == type ? rows_for_result(x) : TypedRows(x.shape(), type);
  on_real_rows(out, false, compute, std::as_const(x));
  return out;
}

/// Adds the rows that compute(out, accumulate, grad) writes to the gradient `to`; in the memory of `grad` if
/// this is its only handle and `to` is still undefined. `out` may be `grad`.
template <class Compute>
void pass_rows(Gradient& to, TypedRows grad, const Compute& compute) {
  if (!to.defined() && grad.unique() && grad.type() == to.type()) {
    TypedRows out = grad;
    compute(out, false, std::as_const(grad));
    grad = {};
    to.add(std::move(out));
  } else {
    to.add_rows([&](TypedRows& out, bool accumulate) { compute(out, accumulate, std::as_const(grad)); });
  }
}

/// The same for compute(first row, out, accumulate, grad, kept...) of tensors; all have the rows of `to`.
template <class Compute, class... Kept>
void pass_elementwise(Gradient& to, TypedRows grad, const Compute& compute, const Kept&... kept) {
  pass_rows(to, std::move(grad), [&](TypedRows& out, bool accumulate, const TypedRows& from) {
    on_real_rows(
        out, accumulate,
        [&](Index first, Tensor& rows, const Tensor& g, const auto&... of_kept) {
          compute(first, rows, accumulate, g, of_kept...);
        },
        from, kept...);
  });
}
}}  // namespace sar
