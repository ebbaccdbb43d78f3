// SPDX-License-Identifier: MIT

/// Variable: a tensor that may take part in differentiation.
///
/// Room autograd: Variables, tapes and differentiable operations on the tensors of one process. It does not
/// know MPI.
#pragma once

#include <sar/autograd/gradient.hpp>
#include <sar/core/tensor/deferred_rows.hpp>

#include <initializer_list>
#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// A handle to a value, a flag whether it requires a gradient, and the gradient. Copies are the same
/// variable. A dual variable also has a tangent.
///
/// @code
/// const Variable x(Tensor::full({2, 3}, 1));                  // a constant
/// Variable w(Tensor::full({3}, 2), /*requires_grad=*/true);   // a leaf
/// Tape tape;
/// tape.backward(sum(relu(x * w)));
/// const Tensor gradient = w.grad();                           // [2, 2, 2]
/// @endcode
class Variable {
 public:
  Variable() = default;
  /// A leaf. With requires_grad, the current tape records operations on it.
  Variable(Tensor value, bool requires_grad = false);  // NOLINT: a tensor is a constant variable
  /// The same for rows of any type.
  Variable(TypedRows value, bool requires_grad = false);  // NOLINT
  /// For authors of operations: a value that is computed when it is read.
  explicit Variable(std::shared_ptr<const DeferredRows> deferred, bool requires_grad = false);

  [[nodiscard]] bool defined() const noexcept { return deferred_ != nullptr || value_.defined(); }
  /// Returns the value; computes it first if it is deferred, and widens it if it is stored in bfloat16.
  [[nodiscard]] const Tensor& value() const { return deferred_ == nullptr ? value_ : deferred_->all(); }
  [[nodiscard]] Tensor& value() {
    if (deferred_ != nullptr) {
      value_ = deferred_->all();
      deferred_ = nullptr;
    }
    return value_;
  }
  [[nodiscard]] const Shape& shape() const noexcept {
    return deferred_ == nullptr ? value_.shape() : deferred_->shape();
  }
  [[nodiscard]] Index num_rows() const noexcept { return shape()[0]; }
  [[nodiscard]] bool requires_grad() const noexcept { return gradient() != nullptr; }
  /// Returns the gradient accumulated by Tape::backward(); undefined if there is none. Only leaves keep their
  /// gradient: that of an intermediate result is released as soon as it has been passed on.
  [[nodiscard]] Tensor grad() const;
  /// Resets the gradient to undefined.
  void zero_grad();
  /// Returns the same value as a constant without a tangent.
  [[nodiscard]] Variable detach() const;
  /// Returns whether this is a dual variable.
  [[nodiscard]] bool is_dual() const noexcept { return tangent_ != nullptr; }
  /// Returns the tangent of a dual variable; otherwise undefined.
  [[nodiscard]] Variable tangent() const { return tangent_ != nullptr ? *tangent_ : Variable(); }
  /// Returns the same variable without its tangent.
  [[nodiscard]] Variable primal() const {
    Variable x = *this;
    x.tangent_ = nullptr;
    return x;
  }

  /// For authors of operations that read rows of several types: returns the value as it is stored; computes
  /// it first if it is deferred.
  [[nodiscard]] TypedRows rows() const {
    return deferred_ == nullptr ? TypedRows(value_) : deferred_->stored();
  }
  /// For authors of operations: returns rows() and leaves this handle without a value.
  TypedRows take_rows() {
    TypedRows taken = rows();
    value_ = {};
    deferred_ = nullptr;
    return taken;
  }
  /// For authors of operations: returns the type of rows().
  [[nodiscard]] NumberType type() const noexcept {
    return deferred_ == nullptr ? NumberType::reals : deferred_->type();
  }
  /// For authors of operations: returns the gradient to add to; null for a constant.
  [[nodiscard]] const GradientPtr& gradient() const noexcept {
    return gradient_ == nullptr || OuterGradients::hides(gradient_.get()) ? of_constants : gradient_;
  }
  /// For authors of operations: returns the rows of a deferred value (core/products/row_operand.hpp),
  /// otherwise null.
  [[nodiscard]] const std::shared_ptr<const DeferredRows>& deferred() const noexcept { return deferred_; }

 private:
  friend Variable make_dual(const Variable& x, const Variable& tangent);

  static inline const GradientPtr of_constants{};

  Tensor value_;  // undefined while deferred
  std::shared_ptr<const DeferredRows> deferred_;
  GradientPtr gradient_;
  std::shared_ptr<const Variable> tangent_;  // of a dual variable
};

// Dual variables: derivatives along a direction, in forward mode.
//
// A dual variable has a value x and a tangent t. Operations on it return the value y = f(x) and the tangent
//
//     dy = d f(x + eps t) / d eps at eps = 0
//
// The tangent is computed by differentiable operations, so a tape records both, and a backward pass from a
// function of the tangent gives second derivatives. With a loss L(E, F) of an energy E and forces F =
// -dE/dx, for instance, and with constants a = dL/dE and v = dL/dF,
//
//     dL/dtheta = d/dtheta (a E + tangent of E),    x with the tangent -v
//
// Operations with a tangent say nothing about it. An operation without one throws InputError with its name
// (refuse_tangents() in tape.hpp), on all ranks if it is collective.

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
