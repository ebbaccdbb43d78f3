// SPDX-License-Identifier: MIT

// The loops are collected from the last dimension to the first. A repeated operand has stride 0; a
// dimension is merged with the loop inside it if both operands go on with the strides of that loop.
// offsets() decodes a line number by divisions: O(dims) per line.
#include <sar/core/error.hpp>
#include <sar/core/tensor/broadcast.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the extent of dimension `d`, counted from the last; 1 if the shape has fewer dimensions.
Index extent_from_end(const Shape& shape, int d) {
  return d < shape.dims() ? shape[shape.dims() - 1 - d] : 1;
}

}  // namespace

Shape broadcast(const Shape& a, const Shape& b) {
  require<ShapeError>(a.dims() > 0 && b.dims() > 0, "operation on an undefined tensor (shapes ", a, " and ",
                      b, ")");
  const int dims = std::max(a.dims(), b.dims());
  std::array<Index, 4> extents{};
  for (int d = 0; d < dims; ++d) {
    const Index m = extent_from_end(a, d);
    const Index n = extent_from_end(b, d);
    require<ShapeError>(m == n || m == 1 || n == 1, "shapes ", a, " and ", b, " do not broadcast: ", m,
                        " against ", n, " in dimension ", dims - 1 - d,
                        " (a vector is a row; write a column as [N, 1])");
    extents[dims - 1 - d] = m == 1 ? n : m;
  }
  return Shape(std::span<const Index>(extents).first(dims));
}

BroadcastLoops::BroadcastLoops(const Shape& a, const Shape& b, const Shape& common) {
  // Collect the loops innermost first; they are reversed at the end.
  Index next_a = 1;
  Index next_b = 1;
  for (int d = 0; d < common.dims(); ++d) {
    const Index n = extent_from_end(common, d);
    const Index step_a = extent_from_end(a, d) == n ? next_a : 0;
    const Index step_b = extent_from_end(b, d) == n ? next_b : 0;
    next_a *= extent_from_end(a, d);
    next_b *= extent_from_end(b, d);
    if (n == 1) continue;
    const int last = dims - 1;
    if (dims > 0 && step_a == stride_a[last] * extent[last] && step_b == stride_b[last] * extent[last]) {
      extent[last] *= n;
      continue;
    }
    const int at = dims++;
    extent[at] = n;
    stride_a[at] = step_a;
    stride_b[at] = step_b;
  }
  if (dims == 0) {
    dims = 1;
    extent[0] = 1;
  }
  std::reverse(extent.begin(), extent.begin() + dims);
  std::reverse(stride_a.begin(), stride_a.begin() + dims);
  std::reverse(stride_b.begin(), stride_b.begin() + dims);
}

Index BroadcastLoops::lines() const {
  Index count = 1;
  for (int d = 0; d + 1 < dims; ++d) count *= extent[d];
  return count;
}

std::array<Index, 2> BroadcastLoops::offsets(Index line) const {
  std::array<Index, 2> at{};
  for (int d = dims - 1; d-- > 0;) {
    const Index i = line % extent[d];
    line /= extent[d];
    at[0] += i * stride_a[d];
    at[1] += i * stride_b[d];
  }
  return at;
}

}}  // namespace sar
