#include <sar/autograd/variable.hpp>
#include <sar/core/tensor/deferred_rows.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Variable::Variable(Tensor value, bool requires_grad) : value_(std::move(value)) {
  if (requires_grad) gradient_ = OuterGradients::make_gradient(value_.shape());
}

Variable::Variable(std::shared_ptr<const DeferredRows> deferred, bool requires_grad)
    : deferred_(std::move(deferred)) {
  if (requires_grad) gradient_ = OuterGradients::make_gradient(deferred_->shape());
}

const Tensor& Variable::all_rows() const {
  return deferred_->all();
}

void Variable::compute_value() {
  value_ = deferred_->all();
  deferred_ = nullptr;
}

const Shape& Variable::deferred_shape() const noexcept {
  return deferred_->shape();
}

Variable Variable::detach() const {
  Variable constant = *this;
  constant.gradient_ = nullptr;
  return constant;
}

Tensor Variable::grad() const {
  return gradient_ != nullptr ? gradient_->value() : Tensor();
}

void Variable::zero_grad() {
  if (gradient_ != nullptr) gradient_->clear();
}

}}  // namespace sar
