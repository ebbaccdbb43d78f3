#include <sar/autograd/deferred_rows.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/elementwise.hpp>
#include <sar/core/error.hpp>

#include <utility>

namespace sar::inline SAR_PRECISION {
void Gradient::add(Tensor gradient) {
  require<ShapeError>(gradient.shape() == shape_, "gradient of shape ", gradient.shape(),
                      " for a variable of shape ", shape_);
  require_live();
  if (!value_.defined()) {
    value_ = std::move(gradient);
    return;
  }
  Tensor sum = value_.unique() ? value_ : gradient.unique() ? gradient : Tensor(shape_);
  binary(BinaryOp::add, value_, gradient, sum);
  value_ = std::move(sum);
}

void Gradient::add(FunctionRef<void(Tensor&, bool)> compute) {
  require_live();
  if (!value_.defined()) {
    Tensor fresh(shape_);
    compute(fresh, false);
    value_ = std::move(fresh);
    return;
  }
  if (!value_.unique()) value_ = value_.clone();
  compute(value_, true);
}

Tensor Gradient::take() {
  return std::exchange(value_, Tensor());
}

void Gradient::release() noexcept {
  value_ = Tensor();
  released_ = true;
}

void Gradient::require_live() const {
  require(
      !released_, "a gradient arrives at a result of shape ", shape_,
      " whose tape has gone backward already or is destroyed; detach() the result to use it as a constant");
}

Variable::Variable(Tensor value, bool requires_grad) : value_(std::move(value)) {
  if (requires_grad) gradient_ = std::make_shared<Gradient>(value_.shape());
}

Variable::Variable(std::shared_ptr<const DeferredRows> deferred, bool requires_grad)
    : deferred_(std::move(deferred)) {
  if (requires_grad) gradient_ = std::make_shared<Gradient>(deferred_->shape());
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

}  // namespace sar
