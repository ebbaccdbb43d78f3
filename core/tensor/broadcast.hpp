// SPDX-License-Identifier: MIT

/// Broadcasting with NumPy's rules: shapes are aligned at the last dimension; missing dimensions and extents
/// of 1 are repeated. So a vector [D] is a row; a column is [N, 1].
#pragma once

#include <sar/core/tensor/tensor.hpp>

#include <array>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the shape of the elementwise operation a (op) b. Throws ShapeError where two extents differ and
/// neither is 1.
Shape broadcast(const Shape& a, const Shape& b);

/// The loops over two operands broadcast to a common shape, outermost first. Adjacent dimensions that both
/// operands traverse with compatible strides are merged into one loop. Innermost strides are 0 (repeated) or
/// 1 (contiguous).
struct BroadcastLoops {
  int dims = 0;  ///< at least 1
  std::array<Index, 4> extent{};
  std::array<Index, 4> stride_a{};
  std::array<Index, 4> stride_b{};

  /// `a` and `b` must broadcast to `common` (see broadcast()).
  BroadcastLoops(const Shape& a, const Shape& b, const Shape& common);
  /// Returns the extent of the innermost loop.
  [[nodiscard]] Index inner() const { return extent[dims - 1]; }
  /// Returns the number of innermost lines. Line i begins at element i * inner() of the result.
  [[nodiscard]] Index lines() const;
  /// Returns the offsets of the first element of a line in a and in b.
  [[nodiscard]] std::array<Index, 2> offsets(Index line) const;
};

}}  // namespace sar
