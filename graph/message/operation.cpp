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

}}  // namespace sar
