#include <sar/autograd/variable.hpp>
#include <sar/core/error.hpp>

#include <utility>

namespace sar {
namespace {

constexpr index add_grain = 1 << 16;

void add_to(Tensor& sum, const Tensor& a, const Tensor& b) {
  parallel_for(sum.size(), add_grain, [&](index begin, index end) {
    const real* x = a.data();
    const real* y = b.data();
    real* out = sum.data();
    for (index i = begin; i < end; ++i) out[i] = x[i] + y[i];
  });
}

}  // namespace

void Gradient::add(Tensor gradient) {
  require<ShapeError>(gradient.shape() == shape_, "gradient of shape ", gradient.shape(), " for a variable of shape ", shape_);
  if (!value_.defined()) {
    value_ = std::move(gradient);
  } else if (value_.unique()) {
    add_to(value_, value_, gradient);
  } else {
    Tensor sum(shape_);
    add_to(sum, value_, gradient);
    value_ = std::move(sum);
  }
}

void Gradient::add(FunctionRef<void(Tensor&, bool)> compute) {
  if (!value_.defined()) {
    Tensor fresh(shape_);
    compute(fresh, false);
    value_ = std::move(fresh);
    return;
  }
  if (!value_.unique()) value_ = value_.clone();
  compute(value_, true);
}

Tensor Gradient::take() { return std::exchange(value_, Tensor()); }

Variable::Variable(Tensor value, bool requires_grad) : value_(std::move(value)) {
  if (requires_grad) gradient_ = std::make_shared<Gradient>(value_.shape());
}

Tensor Variable::grad() const { return gradient_ != nullptr ? gradient_->value() : Tensor(); }

void Variable::zero_grad() {
  if (gradient_ != nullptr) gradient_->clear();
}

}  // namespace sar
