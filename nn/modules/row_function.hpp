// SPDX-License-Identifier: MIT

/// Type-erased functions and modules that map rows to rows, and sequences of them.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A function applied to a layer's result: [](Variable y) { return elu(std::move(y)); }
using Activation = std::function<Variable(Variable)>;

/// A module that maps a Variable to a Variable, with shared ownership. Layers take networks of the caller in
/// this form: GINConv conv(std::make_shared<Linear>(8, 16, gen)).
class RowFunction {
 public:
  RowFunction() = default;
  template <class M>
  requires(std::is_base_of_v<Module, M>&& std::is_invocable_r_v<Variable, M&, Variable>)
      RowFunction(std::shared_ptr<M> module)  // NOLINT: converts by design
      : module_(module), call_([m = module.get()](Variable x) -> Variable { return (*m)(std::move(x)); }) {
    if constexpr (std::is_same_v<M, Linear>) {
      first_linear_ = [m = module.get()] { return m; };
      after_linear_ = [](Variable x) { return x; };
    } else if constexpr (requires { module->first_linear(); }) {
      first_linear_ = [m = module.get()] { return m->first_linear(); };
      after_linear_ = [m = module.get()](Variable x) { return m->after_first(std::move(x)); };
    }
  }

  [[nodiscard]] explicit operator bool() const noexcept { return module_ != nullptr; }
  [[nodiscard]] Module& module() const noexcept { return *module_; }
  [[nodiscard]] Variable operator()(Variable x) const { return call_(std::move(x)); }

  /// Returns the linear layer that the function begins with, if it is a Linear or a Sequential, otherwise
  /// null. A layer whose aggregation is linear may apply its weight first, add its bias afterwards, and go on
  /// with after_linear().
  [[nodiscard]] const Linear* first_linear() const { return first_linear_ ? first_linear_() : nullptr; }
  /// Returns what the function makes of the result of first_linear().
  [[nodiscard]] Variable after_linear(Variable x) const { return after_linear_(std::move(x)); }

 private:
  std::shared_ptr<Module> module_;
  std::function<Variable(Variable)> call_;
  std::function<const Linear*()> first_linear_;
  std::function<Variable(Variable)> after_linear_;
};

/// A sequence of steps named by position, equivalent to torch.nn.Sequential:
///
///     Sequential mlp;
///     mlp.emplace_back<Linear>(8, 16, gen);    // "0.weight", "0.bias"
///     mlp.push_back(relu);
///     mlp.emplace_back<Linear>(16, 4, gen);    // "2.weight", "2.bias"
class Sequential : public Module {
 public:
  /// Constructs an M at the end and returns it.
  template <class M, class... Args>
  M& emplace_back(Args&&... args) {
    auto module = std::make_shared<M>(std::forward<Args>(args)...);
    register_module(std::to_string(steps_.size()), *module);
    if constexpr (std::is_same_v<M, Linear>)
      if (steps_.empty()) first_linear_ = module.get();
    steps_.emplace_back(RowFunction(module));
    return *module;
  }
  /// Appends a function without parameters; it takes up a position, too.
  void push_back(std::function<Variable(Variable)> function) { steps_.push_back(std::move(function)); }

  [[nodiscard]] Variable operator()(Variable x) const {
    for (const auto& step : steps_) x = step(std::move(x));
    return x;
  }
  /// Returns the first step if it is a Linear, otherwise null.
  [[nodiscard]] const Linear* first_linear() const noexcept { return first_linear_; }
  /// Applies all steps but the first.
  [[nodiscard]] Variable after_first(Variable x) const {
    for (std::size_t i = 1; i < steps_.size(); ++i) x = steps_[i](std::move(x));
    return x;
  }

 private:
  const Linear* first_linear_ = nullptr;
  std::vector<std::function<Variable(Variable)>> steps_;
};

}}  // namespace sar
