// SPDX-License-Identifier: MIT

/// One linear map per type of rows.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/nn/modules/init.hpp>
#include <sar/nn/modules/module.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

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
