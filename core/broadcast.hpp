/// Broadcasting as NumPy does it: shapes are aligned at their last dimension, missing dimensions and extents
/// of 1 are repeated. A vector [D] is therefore a row; a column is [N, 1].
#pragma once

#include <sar/core/tensor.hpp>

#include <array>

namespace sar::inline SAR_PRECISION {

/// The shape of a (op) b. Throws ShapeError when an extent differs and is not 1 in either.
Shape broadcast(const Shape& a, const Shape& b);

/// The loops over two operands of a common shape, outermost first. Neighbouring dimensions that both operands
/// traverse alike are one loop. The innermost strides are 0 (repeated) or 1 (contiguous).
struct BroadcastLoops {
  int dims = 0;  ///< at least 1
  std::array<Index, 4> extent{};
  std::array<Index, 4> stride_a{};
  std::array<Index, 4> stride_b{};

  /// `a` and `b` must broadcast to `common`.
  BroadcastLoops(const Shape& a, const Shape& b, const Shape& common);
  [[nodiscard]] Index inner() const { return extent[dims - 1]; }
  /// Number of innermost lines; line i of the common shape begins at element i * inner().
  [[nodiscard]] Index lines() const;
  /// First element of a line in a and in b.
  [[nodiscard]] std::array<Index, 2> offsets(Index line) const;
};

}  // namespace sar
