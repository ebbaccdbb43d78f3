// SPDX-License-Identifier: MIT

// A thread in a Scope collects: receiver() finds the counterpart of a gradient in a list, O(captured
// variables), because there are few of them and the list keeps the order of first use. A hash set has the
// gradients made in the scope, which receive directly.
#include <sar/autograd/gradient.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/rows/elementwise.hpp>

namespace sar { inline namespace SAR_PRECISION {

// Additions to the collected gradients themselves are not collected again.
OuterGradients::Scope::Scope(OuterGradients& to) : hidden_(std::exchange(current_, &to)) {
  for (const auto& entry : to.kept_) to.inner_.insert(entry.second.get());
}
OuterGradients::Scope::~Scope() {
  current_->inner_.clear();
  current_ = hidden_;
}

GradientPtr OuterGradients::make_gradient(const Shape& shape, NumberType type) {
  auto gradient = std::make_shared<Gradient>(shape, type);
  if (current_ != nullptr) current_->inner_.insert(gradient.get());
  return gradient;
}

Gradient& OuterGradients::receiver(Gradient& gradient) {
  if (current_ == nullptr || current_->inner_.contains(&gradient)) return gradient;
  auto& kept = current_->kept_;
  const auto found = std::ranges::find_if(kept, [&](const auto& entry) { return entry.first == &gradient; });
  if (found != kept.end()) return *found->second;
  Gradient& receiver =
      *kept.emplace_back(&gradient, std::make_unique<Gradient>(gradient.shape(), gradient.type())).second;
  receiver.set_temporary();
  current_->inner_.insert(&receiver);
  return receiver;
}

std::vector<std::pair<Gradient*, TypedRows>> OuterGradients::take() {
  std::vector<std::pair<Gradient*, TypedRows>> taken;
  for (const auto& [gradient, sum] : std::exchange(kept_, {})) taken.emplace_back(gradient, sum->take());
  return taken;
}

void OuterGradients::pass_on() {
  for (auto& [gradient, sum] : take()) gradient->add(std::move(sum));
}

void Gradient::add(TypedRows gradient) {
  if (Gradient& to = OuterGradients::receiver(*this); &to != this) return to.add(std::move(gradient));
  require<ShapeError>(gradient.shape() == shape_, "gradient of shape ", gradient.shape(),
                      " for a variable of shape ", shape_);
  require_live();
  save();
  if (!value_.defined()) {
    value_ = std::move(gradient);
    return;
  }
  if (value_.exact_sums() != nullptr || gradient.exact_sums() != nullptr) {
    if (value_.is_real()) std::swap(value_, gradient);
    if (!value_.unique()) value_ = value_.clone();
    return sar::add_rows(gradient, value_);
  }
  if (value_.is_bfloat16() || gradient.is_bfloat16()) {
    if (!value_.is_real() && gradient.is_real()) std::swap(value_, gradient);
    if (!value_.unique()) value_ = value_.clone();
    return sar::add_rows(gradient, value_);
  }
  const Tensor &a = value_.reals(), &b = gradient.reals();
  Tensor sum = a.unique() ? a : b.unique() ? b : Tensor(shape_);
  binary(BinaryOp::add, a, b, sum);
  value_ = std::move(sum);
}

void Gradient::add(FunctionRef<void(Tensor&, bool)> compute) {
  if (Gradient& to = OuterGradients::receiver(*this); &to != this) return to.add(compute);
  if (value_.defined() && !value_.is_real()) {
    Tensor gradient(shape_);
    compute(gradient, false);
    return add(std::move(gradient));
  }
  add_in(NumberType::reals, [&](TypedRows& out, bool accumulate) { compute(out.reals(), accumulate); });
}

void Gradient::add_rows(FunctionRef<void(TypedRows&, bool)> compute) {
  add_in(type_, compute);
}

/// `type`: of the sum if this is the first addition.
void Gradient::add_in(NumberType type, FunctionRef<void(TypedRows&, bool)> compute) {
  if (Gradient& to = OuterGradients::receiver(*this); &to != this) return to.add_in(type, compute);
  require_live();
  if (value_.exact_sums() != nullptr) {
    TypedRows gradient(shape_, type);
    compute(gradient, false);
    return add(gradient.to_tensor());
  }
  save();
  const bool accumulate = value_.defined();
  if (!accumulate)
    value_ = TypedRows(shape_, type);
  else if (!value_.unique())
    value_ = value_.clone();
  try {
    compute(value_, accumulate);
  } catch (...) {
    if (!accumulate) value_ = {};
    throw;
  }
}

TypedRows Gradient::total() const {
  if (!shared_.defined()) return value_;
  if (!value_.defined()) return shared_;
  Tensor sum(shape_);
  binary(BinaryOp::add, shared_.to_tensor(), value_.to_tensor(), sum);
  return sum;
}

TypedRows Gradient::take() {
  save();
  TypedRows sum = total();
  value_ = shared_ = {};
  return sum;
}

TypedRows Gradient::take_own() {
  save();
  return std::exchange(value_, {});
}

void Gradient::add_shared(TypedRows gradient) {
  require<ShapeError>(gradient.shape() == shape_, "gradient of shape ", gradient.shape(),
                      " for a variable of shape ", shape_);
  save();
  const TypedRows own = std::exchange(value_, std::move(gradient));
  shared_ = total();
  value_ = own;
}

void Gradient::replace(TypedRows gradient) {
  save();
  const bool is_shared = shared_.defined() && !value_.defined();
  value_ = shared_ = {};
  (is_shared ? shared_ : value_) = std::move(gradient);
}

void Gradient::release() noexcept {
  value_ = shared_ = {};
  released_ = true;
}

// Saves the sum in the open Transaction if it outlives the call: not in a parallel part, where it is passed
// on later. The saved handle makes value_ not unique, so that the next addition writes to other memory.
void Gradient::save() {
  if (temporary_ || OuterGradients::current_ != nullptr) return;
  Transaction::save(this, sizeof(*this), [this] {
    return [gradient = weak_from_this(), before = value_, shared = shared_] {
      if (const GradientPtr alive = gradient.lock()) {
        alive->value_ = before;
        alive->shared_ = shared;
      }
    };
  });
}

void Gradient::require_live() const {
  require(
      !released_, "a gradient arrives at a result of shape ", shape_,
      " whose tape has gone backward already or is destroyed; detach() the result to use it as a constant");
}

}}  // namespace sar
