#include <sar/autograd/heads.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/heads.hpp>
#include <sar/core/rows/reduce.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {

Variable head_dots(Variable x, Variable a) {
  require<ShapeError>(x.shape().dims() == 3, "head_dots: rows of shape ", x.shape(), ", expected [N, H, D]");
  Tensor y({x.shape()[0], x.shape()[1]});
  head_dots(x.value(), a.value(), y);
  if (!recording({&x, &a})) return y;
  return record(
      std::move(y), [dx = x.gradient(), da = a.gradient(), kept_x = a.requires_grad() ? x.value() : Tensor(),
                     kept_a = x.requires_grad() ? a.value() : Tensor()](const Tensor& grad) {
        if (dx != nullptr)
          dx->add([&](Tensor& out, bool accumulate) { head_dots_backward_x(grad, kept_a, out, accumulate); });
        if (da == nullptr) return;
        std::vector<double> sums(da->shape().size());
        head_dots_backward_a(grad, kept_x, sums);
        da->add(Tensor::from(da->shape(), sums));
      });
}

Variable head_mean(Variable x) {
  const Shape shape = x.shape();
  require<ShapeError>(shape.dims() == 3 && shape[1] > 0, "head_mean: rows of shape ", shape,
                      ", expected [N, H, D]");
  const Shape one_head{shape[0], 1, shape[2]};
  const auto scale = static_cast<real>(1.0 / static_cast<double>(shape[1]));
  Tensor y(one_head);
  sum_to(x.value(), y);
  scale_shift(y, scale, 0, y);
  const Tensor result = y.reshape({shape[0], shape[2]});
  y = Tensor();
  if (!recording({&x})) return result;
  return record(result, [dx = x.gradient(), one_head, scale](const Tensor& grad) {
    dx->add([&](Tensor& out, bool accumulate) {
      binary(BinaryOp::mul, grad.reshape(one_head), Tensor::full({1}, scale), out, accumulate);
    });
  });
}

}}  // namespace sar
