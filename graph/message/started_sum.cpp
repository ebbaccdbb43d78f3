// SPDX-License-Identifier: MIT
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/op_support.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/started_sum.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

void* StartedSum::Operation::operator new(std::size_t bytes) {
  return allocate_object(bytes);
}
NumberType StartedSum::Operation::base_type() const {
  return type_of_results();
}
void StartedSum::Operation::operator delete(void* operation, std::size_t bytes) noexcept {
  deallocate_object(operation, bytes);
}

StartedSum::~StartedSum() {
  if (operation_ == nullptr || std::uncaught_exceptions() > exceptions_) return;
  try {
    operation_->discard();
  } catch (...) {  // a peer or MPI has failed: the next collective call says so
  }
}

NumberType StartedSum::base_type() const {
  require<InputError>(operation_ != nullptr, "the base_type() of a sum that is finished");
  return operation_->base_type();
}

Variable StartedSum::finish(Variable base) {
  return comm_.agree([&] {
    require<InputError>(operation_ != nullptr, "a sum is finished a second time");
    const std::unique_ptr<Operation> operation = std::move(operation_);  // ends here, also if it fails
    require<ShapeError>(!base.defined() || base.shape() == operation->shape(), "a base of shape ",
                        base.shape(), " for a result of shape ", operation->shape());
    if (!base.is_dual()) return operation->finish(std::move(base));
    const Variable sum = operation->finish(base.primal());
    return make_dual(sum.primal(), tangent_sum(sum.tangent(), base.tangent(), sum.shape()));
  });
}

}}  // namespace sar
