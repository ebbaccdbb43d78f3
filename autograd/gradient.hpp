// SPDX-License-Identifier: MIT

/// Gradients of variables, while they are being accumulated.
#pragma once

#include <sar/config.hpp>
#include <sar/core/tensor/typed_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The gradient of one variable, while it is being accumulated. An operation that sends a gradient but does
/// not need the value keeps this and not the variable.
class Gradient : public std::enable_shared_from_this<Gradient> {
 public:
  /// `type`: of the variable's rows.
  explicit Gradient(const Shape& shape, NumberType type = NumberType::reals) : shape_(shape), type_(type) {}

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// Returns the type in which an operation that knows several types makes the gradient.
  [[nodiscard]] NumberType type() const noexcept { return type_; }
  /// Returns whether something was added.
  [[nodiscard]] bool defined() const noexcept { return value_.defined() || shared_.defined(); }
  /// Returns the sum so far; undefined until something was added.
  [[nodiscard]] Tensor value() const { return total().to_tensor(); }

  /// Adds `gradient`. The first one is kept without a copy; later sums are written into its memory only if no
  /// other handle refers to it. A sum of rows of two types is of type reals. Throws ShapeError if the shape
  /// differs from the variable's, Error after release(). What is added to exact sums, or has exact sums added
  /// to it, becomes an exact sum.
  void add(TypedRows gradient);
  /// Adds the values that `compute(out, accumulate)` writes: to new memory (accumulate is false) or on top of
  /// the present sum (accumulate is true), without a temporary tensor. `compute` must not add to this
  /// gradient by other calls.
  void add(FunctionRef<void(Tensor& out, bool accumulate)> compute);
  /// The same for operations that know several types: rows of type(), or of the type of the present sum.
  void add_rows(FunctionRef<void(TypedRows& out, bool accumulate)> compute);
  /// Returns the sum and resets it to undefined.
  TypedRows take();
  /// For gather_grads: returns whether something was added since the last add_shared().
  [[nodiscard]] bool has_own() const noexcept { return value_.defined(); }
  /// For gather_grads: returns what was added since the last add_shared(), and resets it to undefined.
  TypedRows take_own();
  /// For gather_grads: adds to the part of the sum that all ranks share, which take_own() leaves as it is.
  void add_shared(TypedRows gradient);
  /// Replaces the sum by `gradient`; a sum that all ranks share stays one.
  void replace(TypedRows gradient);
  /// For the tape and OuterGradients: the gradient exists only within a pass, so transactions do not save it.
  void set_temporary() noexcept { temporary_ = true; }
  /// For the tape: drops the sum and makes later additions fail, because nothing would pass them on.
  void release() noexcept;

 private:
  void add_in(NumberType type, FunctionRef<void(TypedRows& out, bool accumulate)> compute);
  void require_live() const;
  void save();
  [[nodiscard]] TypedRows total() const;

  Shape shape_;
  NumberType type_;
  TypedRows value_;   // what was added on this rank
  TypedRows shared_;  // of a parameter: sums over all ranks, of add_shared()
  bool released_ = false;
  bool temporary_ = false;
};

/// Shared by a variable's handles and the records that send gradients to it.
using GradientPtr = std::shared_ptr<Gradient>;

/// Collects gradients for variables outside of a parallel part. An operation that runs parts of its backward
/// pass on several threads gives each part its own OuterGradients; pass_on() adds them to the variables, part
/// after part. So no two threads add to the same variable, and the order of additions does not depend on the
/// threads.
class OuterGradients : NonCopyable {
 public:
  /// `wanted` is false: in a scope, variables made outside of it are constants for this thread's operations.
  /// What other threads add to them is collected, and dropped with the collection.
  explicit OuterGradients(bool wanted = true) : wanted_(wanted) {}

  /// During its lifetime, everything that this thread adds to the gradient of a variable is collected in
  /// `to`, except for variables made on this thread within the scope. Scopes nest; the innermost collects.
  class Scope : NonCopyable {
   public:
    explicit Scope(OuterGradients& to);
    ~Scope();

   private:
    OuterGradients* hidden_;
  };

  /// Adds the collected gradients to their variables, in the order of first use, and clears the collection.
  /// The variables must still exist.
  void pass_on();
  /// Returns the collected gradients in the order of first use, and clears the collection.
  [[nodiscard]] std::vector<std::pair<Gradient*, TypedRows>> take();
  /// Makes the gradient of a variable, or one for an operation's own use. Within a scope of this thread it
  /// receives directly.
  [[nodiscard]] static std::shared_ptr<Gradient> make_gradient(const Shape& shape,
                                                               NumberType type = NumberType::reals);

 private:
  friend class Gradient;
  friend class Variable;
  /// Returns whether a scope of this thread makes a constant of the variable with this gradient.
  static bool hides(const Gradient* gradient) noexcept {
    return current_ != nullptr && !current_->wanted_ && !current_->inner_.contains(gradient);
  }
  /// Returns where this thread adds for `gradient`: the gradient itself, or its collected counterpart.
  static Gradient& receiver(Gradient& gradient);

  static inline constinit thread_local OuterGradients* current_ = nullptr;
  bool wanted_;
  std::unordered_set<const Gradient*> inner_;  // gradients of variables made in the scope
  std::vector<std::pair<Gradient*, std::unique_ptr<Gradient>>> kept_;
};

}}  // namespace sar
