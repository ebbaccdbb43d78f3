/// A linear map for each type of rows.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/nn/init.hpp>
#include <sar/nn/module.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// How the matrix of a type r is made.
enum class Regularizer {
  none,   ///< W_r of its own
  basis,  ///< sum_b a_rb V_b over num_bases matrices that the types share
  bdd,    ///< num_bases blocks on the diagonal
};

struct TypedLinearOptions {
  Regularizer regularizer = Regularizer::none;
  Index num_bases = 0;  ///< 0: as many as types
};

/// As dgl.nn.TypedLinear: y_i = x_i W_r for a row i of type r, without a bias.
///
/// Parameters: W, which is [types, in, out] for none, [bases, in, out] for basis with coeff a [types, bases],
/// and [types, bases (in/bases) (out/bases)] for bdd. W starts uniform in +-1/sqrt(rows of its matrices),
/// coeff Xavier-uniform with ReLU's gain.
class TypedLinear : public Module {
 public:
  /// Throws InputError unless widths and num_types are positive and, for bdd, multiples of num_bases.
  TypedLinear(Index in_size, Index out_size, Index num_types, Generator& gen,
              const TypedLinearOptions& options = {});

  /// x [n, in] and the types of its rows, n numbers -> [n, out]. Rows that are sorted by type are multiplied
  /// where they lie. Throws ShapeError for another width or number of types, and for a type that does not
  /// exist. Local.
  [[nodiscard]] Variable operator()(Variable x, std::span<const Index> types) const;

  /// The matrices, as gather_mm takes them: [types, in, out], or for bdd the blocks on the diagonals, [types,
  /// bases, in / bases, out / bases]. Those of basis are computed here, for all types.
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

}  // namespace sar::inline SAR_PRECISION
