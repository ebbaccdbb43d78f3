// SPDX-License-Identifier: MIT
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/graph/message/operation.hpp>

namespace sar { inline namespace SAR_PRECISION {

void add_arguments(CollectiveCall& call, OperationScopes) {
  call.equal("mixed precision", mixed_precision())
      .equal("recording for a backward pass (Tape in scope)", Tape::current() != nullptr);
}

OperationCall::OperationCall(const char* operation, const Graph& graph, Tangents tangents)
    : CollectiveCall(operation), tangents_(tangents) {
  require<InputError>(!mixed_precision() || !graph.options().reproducible,
                      "a reproducible graph in mixed precision, expected one of them");
  equal(graph.options()).equal(OperationScopes());
}

OperationCall& OperationCall::operand(const char* name, const Variable& x) {
  if (tangents_ == Tangents::none) refuse_tangents({&x}, CollectiveCall::operation());
  CollectiveCall::operand(name, x.shape(), x.requires_grad());
  if (tangents_ == Tangents::known) property("tangent of ", name, x.is_dual() ? "true" : "false");
  return *this;
}

OperationCall& OperationCall::sources(const char* name, const Variable& x) {
  property("type of ", name, x.type() == NumberType::bfloat16 ? "bfloat16" : "real");
  return operand(name, x);
}

// The second half is the record of an empty tensor, made when the operation starts. The first half adds an
// empty gradient to it if an exchange is in flight, or if sums are exact: then on one rank, too, so that
// gradients are added in the same order on any number of ranks. The tape then reaches the second half after
// it has differentiated everything recorded in between.
namespace {

constexpr const char* call_name = "a backward pass";

}  // namespace

SplitBackward::SplitBackward(const Communicator& comm, GradientPtr gradient)
    : comm_(comm), gradient_(std::move(gradient)) {
  const Variable start = record(signal_, [comm, to = gradient_, pass = pass_](const Tensor&) {
    comm.agree([&] { pass->finish(to); }, call_name);
  });
  second_half_ = start.gradient();
}

// Once an exchange has begun, the ranks do not meet before the second half, so a failure waits for it, and
// nothing else may fail here.
void SplitBackward::run(FunctionRef<void(BackwardPass&)> start) const {
  comm_.agree_to_start(
      [&] {
        try {
          start(*pass_);
        } catch (...) {
          if (!pass_->in_flight()) throw;
          pass_->fail();
        }
        if (!pass_->adds_later()) pass_->finish(gradient_);
        return pass_->in_flight();
      },
      call_name);
  if (pass_->adds_later()) second_half_->add(signal_);
}
}}  // namespace sar
