// SPDX-License-Identifier: MIT

/// A radial network with constant weights as few functions of the distance, in a table.
#pragma once

#include <sar/core/tensor/tensor.hpp>
#include <sar/nn/atoms/harmonic_rows.hpp>

#include <cstddef>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The rows a(r) before the last matrix W of a radial network lie, for the distances r of one of the sections
/// into which the distances up to the cutoff are divided, near a space of few dimensions, to 4e-8 of the
/// largest of their numbers:
///
///     a(r) = B phi(r)        W a(r) = last(s) phi(r),  last(s) = W B [results, rank]
///
/// The functions phi are found by a Gram-Schmidt process with pivots on the rows at many distances, and are
/// stored as polynomials of degree 7 on equal intervals up to the cutoff, from which on they are 0. Values of
/// the network then have the errors of single precision, and derivatives errors below 1e-6 of the largest
/// one.
///
/// With a distance transform, a depends on the sum s of the covalent radii of both atoms, too. Then phi has a
/// table for each s, and B is the same for all: a(r, s) = B phi(r, s).
class RadialTable {
 public:
  /// Local. `network`: the matrices [out, in] with SiLU between them. `density`: w [1, num_basis], whose
  /// product with the radial functions is one function more; undefined: there is none. `radii`: the sums s,
  /// sorted; empty without a transform.
  RadialTable(const HarmonicFunctions& functions, const std::vector<Tensor>& network, const Tensor& density,
              std::vector<real> radii = {});

  [[nodiscard]] const std::vector<real>& radii() const noexcept { return radii_; }
  /// Returns the number of a sum of radii; 0 without a transform.
  [[nodiscard]] Index number_of(real radii) const;

  static constexpr Index sections = 6;

  /// Returns the section of a distance from 0 on.
  [[nodiscard]] Index section_of(real r) const;
  [[nodiscard]] const Tensor& last(Index section) const { return last_[static_cast<std::size_t>(section)]; }
  /// Numbers of a row of write(): the functions phi, as many as the section with most of them has, and, with
  /// a density, w . b.
  [[nodiscard]] Index columns() const noexcept { return columns_; }
  /// Writes the functions and their derivatives at a distance. Reads 8 numbers for each.
  /// `number`: number_of() the radii.
  void write(real r, Index number, real* values, real* slopes) const;

 private:
  std::vector<Tensor> last_;
  std::vector<real> radii_;
  Index columns_ = 0;
  real cutoff_ = 0, per_length_ = 0;  // intervals of a unit of length
  Tensor coefficients_;               // [radii, intervals, degree + 1, columns], the lowest power first
};

}}  // namespace sar
