/// Gradients that a thread sends to variables of outside, kept apart: for operations that differentiate parts
/// of their work on several threads at once. Each part collects its own, and pass_on() adds them to the
/// variables, part after part. So no two threads add to a variable, and the order of the additions does not
/// depend on the threads.
///
/// What is declared here is defined in variable.cpp.
#pragma once

#include <sar/config.hpp>

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

class Gradient;
class Shape;

class OuterGradients {
 public:
  OuterGradients();
  ~OuterGradients();
  OuterGradients(const OuterGradients&) = delete;
  OuterGradients& operator=(const OuterGradients&) = delete;

  /// While alive, what this thread adds to the gradient of a variable is kept in `to`, unless the variable
  /// was made on this thread since. Scopes nest; the innermost keeps.
  class Scope {
   public:
    explicit Scope(OuterGradients& to);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    OuterGradients* hidden_;
  };

  /// Adds what is kept to the variables, in the order in which they were first met, and forgets it. The
  /// variables must live.
  void pass_on();

 private:
  friend class Gradient;
  friend class Variable;
  static std::shared_ptr<Gradient> make_gradient(const Shape& shape);
  /// Where additions to `gradient` go on this thread: itself, or what is kept of it.
  static Gradient& receiver(Gradient& gradient);

  std::unordered_set<const Gradient*> inner_;  // made in the scope
  std::vector<std::pair<Gradient*, std::unique_ptr<Gradient>>> kept_;
};

}  // namespace sar
