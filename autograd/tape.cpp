// SPDX-License-Identifier: MIT

// The records are a list in the order of the operations. backward() takes them from its end: it takes the
// gradient of the record's output, calls the record unless there is none, and frees it. So each record
// runs once, after all records that read its output.
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/trace/trace.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

thread_local Tape* current_tape = nullptr;

}  // namespace

Tape::Tape() : outer_(std::exchange(current_tape, this)) {}
Tape::~Tape() {
  current_tape = outer_;
  clear();
}

// Releases the gradients, so that a later addition to a result of this tape throws.
void Tape::clear() noexcept {
  for (Record& record : records_) record.output->release();
  records_.clear();
}

Tape* Tape::current() noexcept {
  return current_tape;
}

void Tape::record(GradientPtr output, Backward backward, ExactSums sums) {
  output->set_temporary();
  records_.push_back({std::move(output), std::move(backward), sums});
}

void Tape::backward(const Variable& output) {
  require<ShapeError>(output.shape().size() == 1,
                      "backward() without a seed needs a scalar, not a tensor of shape ", output.shape());
  backward(output, Tensor::full(output.shape(), 1));
}

void Tape::backward(const Variable& output, TypedRows seed) {
  require(output.requires_grad(),
          "backward() from a result that was computed without a tape or from constants only");
  const TraceScope scope("backward", TraceKind::compute);
  const NoTape nothing_is_recorded;
  const Transaction transaction(Transaction::Inner::joins);  // a record that fails ends the pass
  output.gradient()->add(std::move(seed));
  try {
    run_back();
  } catch (...) {
    clear();
    throw;
  }
}

void Tape::run_back() {
  while (!records_.empty()) {
    // Remove the record before running it: its backward pass may throw.
    const Record record = std::move(records_.back());
    records_.pop_back();
    TypedRows grad = record.output->take();
    record.output->release();
    require<InputError>(
        record.sums == ExactSums::taken || grad.exact_sums() == nullptr,
        "a function of a part of the rows, such as a message of a reproducible graph, computes a "
        "tensor of shape ",
        grad.shape(), " from captured variables alone; compute it before the call and capture the result");
    if (grad.defined()) record.backward(std::move(grad));
  }
}

NoTape::NoTape() : hidden_(std::exchange(current_tape, nullptr)) {}
NoTape::~NoTape() {
  current_tape = hidden_;
}

void refuse_tangents(std::initializer_list<const Variable*> inputs, const char* operation) {
  for (const Variable* x : inputs)
    require<InputError>(!x->is_dual(), operation, " of a dual variable of shape ", x->shape(),
                        ": this operation has no tangent, and so no second derivative");
}

bool recording(std::initializer_list<const Variable*> inputs, const char* operation) {
  refuse_tangents(inputs, operation);
  return current_tape != nullptr && std::ranges::any_of(inputs, &Variable::requires_grad);
}

Variable record(const Variable& value, Tape::Backward backward, Tape::ExactSums sums) {
  require(current_tape != nullptr, "record() without a tape in scope");
  Variable output =
      value.deferred() != nullptr ? Variable(value.deferred(), true) : Variable(value.value(), true);
  current_tape->record(output.gradient(), std::move(backward), sums);
  return output;
}
}}  // namespace sar
