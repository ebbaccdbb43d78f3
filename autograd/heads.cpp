// SPDX-License-Identifier: MIT
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/heads.hpp>
#include <sar/autograd/layout.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/heads.hpp>
#include <sar/core/rows/row_access.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {

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
