// SPDX-License-Identifier: MIT

/// Linear layers: the equivalent of torch.nn.Linear, and one map for each key or each type of rows; functions
/// of rows, sequences of them, multi-layer perceptrons.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/autograd/products.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/norms.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

///     y = x W^T + b
///
/// for x [n, in_features]. Parameters: weight W [out_features, in_features] and bias b [out_features], both
/// initialized uniformly in +-1/sqrt(in_features).
///
/// @code
/// const Linear linear(64, 4, gen);
/// const Variable y = linear(features);  // [local nodes, 64] -> [local nodes, 4]
/// @endcode
class Linear : public Module {
 public:
  /// Throws InputError unless both widths are positive.
  Linear(Index in_features, Index out_features, Generator& gen, bool bias = true);

  /// Throws ShapeError if x has another width.
  [[nodiscard]] Variable operator()(const Variable& x) const { return linear(x, weight_, bias_); }

  /// The same as rows of `shape`, which recomputed_linear() computes.
  [[nodiscard]] Variable recomputed(const Variable& x, const Shape& shape) const {
    return recomputed_linear(x, weight_, bias_, shape);
  }

  /// Returns base + y for base [n, out_features]; in the memory of `base` if no other handle refers to it.
  /// Throws ShapeError if shapes do not match.
  [[nodiscard]] Variable add_to(Variable base, const Variable& x) const;

  [[nodiscard]] const Variable& weight() const noexcept { return weight_; }
  [[nodiscard]] const Variable& bias() const noexcept { return bias_; }  ///< undefined without a bias

 private:
  Variable weight_, bias_;
};

/// Equivalent to dgl.nn.HeteroLinear: y_t = x_t W_t^T + b_t for each type t. Input widths differ by type; the
/// output width is common.
///
/// Parameters: linears.TYPE.weight [out, in_t] and linears.TYPE.bias [out], as in Linear. The canonical name
/// of a relation, "user:follows:user", is written in DGL's form ('user', 'follows', 'user').
class HeteroLinear : public Module {
 public:
  using Rows = std::map<std::string, Variable>;  ///< keyed by type

  /// Draws streams from the Generator in the order of the types' names. Throws InputError unless all widths
  /// are positive.
  HeteroLinear(const std::map<std::string, Index>& in_sizes, Index out_size, Generator& gen,
               bool bias = true);

  /// Local. x: rows of some of the types, [n_t, in_t] -> [n_t, out] for the same types. Throws InputError
  /// for an unknown type, ShapeError if a width does not match.
  [[nodiscard]] Rows operator()(const Rows& x) const;

 private:
  struct Linears : Module {
    using Module::register_module;
  };
  Linears linears_;
  std::map<std::string, Linear> of_type_;
};

/// How the matrix W_r of a type r is represented.
enum class Regularizer {
  none,   ///< one matrix per type
  basis,  ///< sum_b a_rb V_b over num_bases matrices that all types share
  bdd,    ///< block diagonal with num_bases blocks
};

struct TypedLinearOptions {
  Regularizer regularizer = Regularizer::none;
  Index num_bases = 0;  ///< 0: the number of types
};

/// Equivalent to dgl.nn.TypedLinear: y_i = x_i W_r for a row i of type r, without a bias.
///
/// Parameters: W, [types, in, out] for none, [bases, in, out] with coeff a [types, bases] for basis, and
/// [types, bases (in/bases) (out/bases)] for bdd. W is uniform in +-1/sqrt(rows of its matrices), coeff
/// Xavier-uniform with the gain of ReLU.
class TypedLinear : public Module {
 public:
  /// Throws InputError unless the widths and num_types are positive and, for bdd, multiples of num_bases.
  TypedLinear(Index in_size, Index out_size, Index num_types, Generator& gen,
              const TypedLinearOptions& options = {});

  /// Local. Multiplies each row of x [n, in] by the matrix of its type -> [n, out]. Rows sorted by type are
  /// multiplied in place, without a copy. Throws ShapeError if the width or the number of types does not
  /// match, or for an invalid type.
  [[nodiscard]] Variable operator()(Variable x, std::span<const Index> types) const;

  /// Returns the matrices in the form that gather_mm takes: [types, in, out], or for bdd the diagonal blocks,
  /// [types, bases, in / bases, out / bases]. For basis, composes the matrices of all types.
  [[nodiscard]] Variable matrices() const;

  [[nodiscard]] Index in_size() const noexcept { return in_size_; }
  [[nodiscard]] Index out_size() const noexcept { return out_size_; }
  [[nodiscard]] Index num_types() const noexcept { return num_types_; }
  [[nodiscard]] const Variable& weight() const noexcept { return weight_; }  ///< W
  [[nodiscard]] const Variable& coeff() const noexcept { return coeff_; }    ///< undefined unless basis

 private:
  Index in_size_, out_size_, num_types_;
  TypedLinearOptions options_;
  Variable weight_, coeff_;
};

// Type-erased functions and modules that map rows to rows, and sequences of them.

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

// Multi-layer perceptron.

struct MLPOptions {
  int hidden_layers = 1;         ///< number of layers of the hidden width; at least 1
  Activation activation = relu;  ///< after every hidden layer
  bool layer_norm = false;       ///< apply LayerNorm to the result
};

/// For x [n, in], k hidden layers and an activation s:
///
///     h_0 = x
///
///     h_i = s(W_i h_{i-1} + b_i), i = 1 .. k
///
///     y = W_{k+1} h_k + b_{k+1}    (y = LayerNorm(y))
///
/// Parameters are named by position, as in a torch.nn.Sequential with an activation between two layers: "0",
/// "2", ... "2 k" as in Linear, and "2 k + 1" as in LayerNorm.
///
/// @code
/// const MLP mlp(64, 32, 4, gen, {.hidden_layers = 2, .layer_norm = true});
/// const Variable y = mlp(features);
/// @endcode
class MLP : public Module {
 public:
  /// Throws InputError unless the widths are positive and there are a hidden layer and an activation.
  MLP(Index in_feats, Index hidden_feats, Index out_feats, Generator& gen, const MLPOptions& options = {});

  /// x [n, in] -> [n, out]. Throws ShapeError if x has another width.
  [[nodiscard]] Variable operator()(const Variable& x) const { return rest(first()(x)); }

  /// Returns the first layer, for callers that compute its product from parts of x: each part is multiplied
  /// by the matching columns of the weight. (*this)(x) equals rest(first()(x)).
  [[nodiscard]] const Linear& first() const noexcept { return linears_.front(); }
  /// Applies everything after the first layer: [n, hidden] -> [n, out].
  [[nodiscard]] Variable rest(Variable first_result) const;

 private:
  std::deque<Linear> linears_;
  Activation activation_;
  std::optional<LayerNorm> norm_;
};
}}  // namespace sar
