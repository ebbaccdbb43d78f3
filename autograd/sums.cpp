// SPDX-License-Identifier: MIT
#include <sar/autograd/dual.hpp>
#include <sar/autograd/sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/reduce.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {

Shape summed_shape(const Shape& shape, ReduceDim over) {
  require<ShapeError>(shape.dims() > 0, "sum of an undefined tensor");
  if (over == ReduceDim::all || shape.dims() == 1) return {1};
  std::vector<Index> extents;
  for (int d = over == ReduceDim::rows ? 1 : 0; d < shape.dims(); ++d) extents.push_back(shape[d]);
  if (over == ReduceDim::columns) extents.back() = 1;
  return Shape(extents);
}

Variable sum_to_shape(const Variable& x, const Shape& shape, real scale) {
  if (x.is_dual())
    return apply_linear(x, [&](const Variable& part) { return sum_to_shape(part, shape, scale); });
  Tensor y(shape);
  sum_to(x.value(), y);
  if (scale != 1) scale_shift(y, scale, 0, y);
  if (!recording({&x})) return y;
  return record(std::move(y), [dx = x.gradient(), scale](const Tensor& grad) {
    dx->add([&](Tensor& out, bool accumulate) {
      binary(BinaryOp::mul, grad, Tensor::full({1}, scale), out, accumulate);
    });
  });
}

Variable sum(Variable x, ReduceDim over) {
  return sum_to_shape(x, summed_shape(x.shape(), over), 1);
}

Variable mean(Variable x, ReduceDim over) {
  const Shape& shape = x.shape();
  require<ShapeError>(shape.dims() > 0, "mean of an undefined tensor");
  const Index terms = over == ReduceDim::all || shape.dims() == 1 ? shape.size()
                      : over == ReduceDim::rows                   ? shape[0]
                                                                  : shape[shape.dims() - 1];
  require<ShapeError>(terms > 0, "mean over no element of a tensor of shape ", shape);
  return sum_to_shape(x, summed_shape(shape, over), static_cast<real>(1.0 / static_cast<double>(terms)));
}

}}  // namespace sar
