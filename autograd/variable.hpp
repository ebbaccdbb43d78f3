/// Variable: a tensor that may take part in differentiation.
///
/// Room autograd: Variables, tapes and differentiable operations on the tensors of one process. It does not
/// know MPI.
#pragma once

#include <sar/core/parallel.hpp>
#include <sar/core/tensor.hpp>

#include <memory>

namespace sar::inline SAR_PRECISION {

/// Where the gradient of one variable is collected. An operation that needs to send a gradient, but not the
/// value, keeps this and not the variable.
class Gradient {
 public:
  explicit Gradient(const Shape& shape) : shape_(shape) {}

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// The sum so far; undefined until something was added.
  [[nodiscard]] const Tensor& value() const noexcept { return value_; }

  /// Adds `gradient`. The handle is kept when it is the first one (no copy), and later sums go into its
  /// memory only when nobody else holds it. Throws ShapeError when the shape is not the variable's, Error
  /// after release().
  void add(Tensor gradient);
  /// Adds what `compute(out, accumulate)` writes: into new memory (accumulate false), or on top of the
  /// present sum (accumulate true), without a temporary tensor in between. What is added meanwhile, from
  /// inside of `compute`, is added to `out` at once: all of it must be defined by then.
  void add(FunctionRef<void(Tensor& out, bool accumulate)> compute);
  /// Returns the sum and forgets it.
  Tensor take();
  void clear() { value_ = Tensor(); }
  /// For the tape: forgets the sum, and lets later additions fail, because nothing passes them on any more.
  void release() noexcept;

 private:
  void require_live() const;

  Shape shape_;
  Tensor value_;
  bool computing_ = false;  ///< value_ is the `out` of a compute() that runs
  bool released_ = false;
};

using GradientPtr = std::shared_ptr<Gradient>;

class DeferredRows;

/// A cheap handle: value, whether a gradient is wanted, and the gradient. Copies are the same variable.
class Variable {
 public:
  Variable() = default;
  /// A leaf. With requires_grad, operations on it are recorded by the tape in scope.
  Variable(Tensor value, bool requires_grad = false);  // NOLINT: a tensor is a constant variable
  /// For authors of operations: a value that is computed when it is read.
  explicit Variable(std::shared_ptr<const DeferredRows> deferred, bool requires_grad = false);

  [[nodiscard]] bool defined() const noexcept { return deferred_ != nullptr || value_.defined(); }
  [[nodiscard]] const Tensor& value() const { return deferred_ == nullptr ? value_ : all_rows(); }
  [[nodiscard]] Tensor& value() {
    if (deferred_ != nullptr) compute_value();
    return value_;
  }
  [[nodiscard]] const Shape& shape() const noexcept {
    return deferred_ == nullptr ? value_.shape() : deferred_shape();
  }
  [[nodiscard]] Index num_rows() const noexcept { return shape()[0]; }
  [[nodiscard]] bool requires_grad() const noexcept { return gradient_ != nullptr; }
  /// The gradient collected by Tape::backward; undefined when none arrived. Only leaves keep theirs: the
  /// gradient of an intermediate result is released as soon as it has been passed on.
  [[nodiscard]] Tensor grad() const;
  void zero_grad();
  /// The same value as a constant.
  [[nodiscard]] Variable detach() const;

  /// For authors of operations: where gradients of this variable go; null for a constant.
  [[nodiscard]] const GradientPtr& gradient() const noexcept { return gradient_; }
  /// For authors of operations: null unless the value is computed when it is read (core/row_operand.hpp).
  [[nodiscard]] const std::shared_ptr<const DeferredRows>& deferred() const noexcept { return deferred_; }

 private:
  [[nodiscard]] const Tensor& all_rows() const;
  void compute_value();
  [[nodiscard]] const Shape& deferred_shape() const noexcept;

  Tensor value_;  // undefined while it is deferred
  std::shared_ptr<const DeferredRows> deferred_;
  GradientPtr gradient_;
};

}  // namespace sar
