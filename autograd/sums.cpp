// SPDX-License-Identifier: MIT
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/layout.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/core/rows/rows.hpp>

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

Variable head_dots(Variable x, Variable a) {
  require<ShapeError>(x.shape().dims() == 3, "head_dots: rows of shape ", x.shape(), ", expected [N, H, D]");
  if (rank_sums() != nullptr && recording({&a}) && a.shape().size() == x.shape().row_size()) {
    // a product and a sum of each row, whose gradients are reproducible
    const Shape &shape = x.shape(), lines{shape[1], shape[2]};
    return reshape(sum(x * reshape(a, lines), ReduceDim::columns), {shape[0], shape[1]});
  }
  if (any_dual({&x, &a}))
    return apply_bilinear(x, a, [](const Variable& rows, const Variable& b) { return head_dots(rows, b); });
  Tensor y({x.shape()[0], x.shape()[1]});
  head_dots(x.rows(), a.value(), y);
  if (!recording({&x, &a})) return y;
  return record(std::move(y), [dx = x.gradient(), da = a.gradient(),
                               kept_x = a.requires_grad() ? x.detach() : Variable(),
                               kept_a = x.requires_grad() ? a.value() : Tensor()](const Tensor& grad) {
    if (dx != nullptr)
      dx->add_rows([&](TypedRows& out, bool accumulate) {
        on_real_rows(out, accumulate, [&](Index first, Tensor& rows) {
          head_dots_backward_x(grad.slice_rows(first, first + rows.num_rows()), kept_a, rows, accumulate);
        });
      });
    if (da == nullptr) return;
    std::vector<double> sums(da->shape().size());
    head_dots_backward_a(grad, kept_x.rows(), sums);
    da->add(Tensor::from(da->shape(), sums));
  });
}

Variable head_mean(Variable x) {
  const Shape shape = x.shape();
  require<ShapeError>(shape.dims() == 3 && shape[1] > 0, "head_mean: rows of shape ", shape,
                      ", expected [N, H, D]");
  const auto scale = static_cast<real>(1.0 / static_cast<double>(shape[1]));
  return reshape(sum_to_shape(x, {shape[0], 1, shape[2]}, scale), {shape[0], shape[2]});
}
}}  // namespace sar
