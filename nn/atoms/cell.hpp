// SPDX-License-Identifier: MIT

/// Cell: the box that a structure of atoms repeats in.
#pragma once

#include <sar/comm/collective_call.hpp>

#include <array>

namespace sar { inline namespace SAR_PRECISION {

using Vector3 = std::array<double, 3>;
using Matrix3 = std::array<Vector3, 3>;

/// Three cell vectors, and the directions in which the structure repeats. An atom at x has images at
///
///     x + n_0 vectors[0] + n_1 vectors[1] + n_2 vectors[2]
///
/// with an integer n_k for each periodic direction k, and n_k = 0 for the others. The default is an isolated
/// structure. Vectors of directions that are not periodic matter for the volume only.
struct Cell {
  Matrix3 vectors{};
  std::array<bool, 3> periodic{};

  bool operator==(const Cell&) const = default;
  /// Returns |det(vectors)|; 0 for the default.
  [[nodiscard]] double volume() const noexcept;
};

/// Adds the values of the cell, which must be the same on every rank.
void add_arguments(CollectiveCall& call, const Cell& cell);

/// Coordinates along the periodic vectors of a cell and, in the other directions, along unit vectors that are
/// orthogonal to them and to each other.
class CellBasis {
 public:
  /// Throws InputError unless the periodic vectors are finite and linearly independent.
  explicit CellBasis(const Cell& cell);

  [[nodiscard]] const std::array<bool, 3>& periodic() const noexcept { return periodic_; }
  /// Returns the coefficients f of a position: x = sum_k f_k vectors[k].
  [[nodiscard]] Vector3 coordinates(const Vector3& x) const noexcept;
  /// Returns sum_k f_k vectors[k].
  [[nodiscard]] Vector3 position(const Vector3& f) const noexcept;
  /// Returns the distance between the planes f_k = 0 and f_k = 1.
  [[nodiscard]] double height(std::size_t k) const noexcept;
  /// Returns the nearest image of a vector to 0 in fractional coordinates: each periodic one is rounded away.
  [[nodiscard]] Vector3 without_translation(const Vector3& d) const noexcept;

 private:
  std::array<bool, 3> periodic_;
  Matrix3 vectors_;
  Matrix3 inverse_;  // f_k = sum_j x_j inverse_[k][j]
};

}}  // namespace sar
