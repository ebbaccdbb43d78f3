// SPDX-License-Identifier: MIT

/// Linear layers: the equivalent of torch.nn.Linear, and one map for each key or each type of rows.
#pragma once

#include <sar/autograd/products.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/nn/modules/init.hpp>
#include <sar/nn/modules/module.hpp>

#include <map>
#include <span>
#include <string>

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
}}  // namespace sar
