// SPDX-License-Identifier: MIT
#include <sar/autograd/dual.hpp>
#include <sar/core/error.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

Variable make_dual(const Variable& x, const Variable& tangent) {
  if (!tangent.defined()) return x;
  require<ShapeError>(x.defined() && x.shape() == tangent.shape(), "make_dual: a tangent of shape ",
                      tangent.shape(), " for a variable of shape ", x.shape());
  require<InputError>(!x.is_dual() && !tangent.is_dual(),
                      "make_dual of a dual variable: there are no tangents of tangents");
  Variable dual = x;
  dual.tangent_ = std::make_shared<const Variable>(tangent);
  return dual;
}

Variable tangent_or_zeros(const Variable& x) {
  return x.is_dual() ? x.tangent() : Variable(Tensor::zeros(x.shape()));
}

}}  // namespace sar
