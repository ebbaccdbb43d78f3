// SPDX-License-Identifier: MIT
#include <sar/autograd/variable.hpp>
#include <sar/core/error.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Variable::Variable(Tensor value, bool requires_grad) : value_(std::move(value)) {
  if (requires_grad) gradient_ = OuterGradients::make_gradient(value_.shape());
}

Variable::Variable(TypedRows value, bool requires_grad) {
  if (value.is_real())
    *this = Variable(std::move(value.reals()), requires_grad);
  else
    *this = Variable(std::make_shared<const Bfloat16Rows>(std::move(value)), requires_grad);
}

Variable::Variable(std::shared_ptr<const DeferredRows> deferred, bool requires_grad)
    : deferred_(std::move(deferred)) {
  if (requires_grad) gradient_ = OuterGradients::make_gradient(deferred_->shape(), deferred_->type());
}

Variable Variable::detach() const {
  Variable constant = *this;
  constant.gradient_ = nullptr;
  constant.tangent_ = nullptr;
  return constant;
}

Tensor Variable::grad() const {
  return gradient_ != nullptr ? gradient_->value() : Tensor();
}

void Variable::zero_grad() {
  if (gradient_ != nullptr) gradient_->take();
}

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
