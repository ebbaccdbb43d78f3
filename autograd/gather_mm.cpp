#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/gather_mm.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/products/gather_mm.hpp>

#include <memory>
#include <numeric>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

Variable gather_mm(Variable x, Variable w, std::span<const Index> types) {
  const Shape& shape = w.shape();
  require<ShapeError>(x.shape().dims() == 2 && (shape.dims() == 3 || shape.dims() == 4) &&
                          static_cast<Index>(types.size()) == x.num_rows(),
                      "gather_mm: x of shape ", x.shape(), ", w of shape ", shape, ", ", types.size(),
                      " types");
  if (any_dual({&x, &w}))
    return apply_bilinear(x, w, [&](const Variable& a, const Variable& b) { return gather_mm(a, b, types); });
  const auto groups = std::make_shared<const TypeGroups>(types, w.num_rows());
  Tensor y({x.num_rows(), shape.dims() == 4 ? shape[1] * shape[3] : shape[2]});
  gather_mm(x.value(), w.value(), *groups, y);
  if (!recording({&x, &w})) return y;
  return record(std::move(y), [groups, dx = x.gradient(), dw = w.gradient(),
                               kept_x = w.requires_grad() ? x.value() : Tensor(),
                               kept_w = x.requires_grad() ? w.value() : Tensor()](const Tensor& grad) {
    if (dw != nullptr)
      dw->add([&](Tensor& out, bool accumulate) { gather_mm_tn(kept_x, grad, *groups, out, accumulate); });
    if (dx != nullptr)
      dx->add([&](Tensor& out, bool accumulate) { gather_mm_nt(grad, kept_w, *groups, out, accumulate); });
  });
}

Variable bmm(Variable x, Variable w) {
  std::vector<Index> each(x.num_rows());
  std::iota(each.begin(), each.end(), 0);
  return gather_mm(std::move(x), std::move(w), each);
}

}}  // namespace sar
