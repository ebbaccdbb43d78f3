// SPDX-License-Identifier: MIT

/// The frame of an operation over the edges of a graph, from its call to its gradients. For implementing
/// operations:
///
///     return collective(
///         graph.comm(),
///         [&] {                                  // what this rank checks by itself, and what must be equal
///           check(...);
///           return OperationCall("typed_attention", graph).sources("key_value", kv).operand("att", att);
///         },
///         [&] { return run_pass(graph, names, recording({&kv, &att}), Pass{...}); });
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/message/driver.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// Scopes of a thread that change what every operation does: mixed precision, and a Tape that records.
struct OperationScopes {};
void add_arguments(CollectiveCall& call, OperationScopes scopes);

/// Whether an operation has tangents; one that has none refuses operands with a tangent.
enum class Tangents { none, known };

/// A call of an operation: besides its arguments, the graph's options, the scopes, and its operands must be
/// the same on all ranks. Throws InputError for a reproducible graph in mixed precision.
class OperationCall : public CollectiveCall {
 public:
  OperationCall(const char* operation, const Graph& graph, Tangents tangents = Tangents::none);

  /// An operand, or none (undefined): its shape except for the first dimension, whether its gradient is
  /// wanted, and whether it has a tangent. Throws InputError if it has one and the operation does not know
  /// tangents.
  OperationCall& operand(const char* name, const Variable& x);
  /// The same of rows that travel: their type as well.
  OperationCall& sources(const char* name, const Variable& x);

 private:
  Tangents tangents_;
};

/// Names in a timeline.
struct PassNames {
  const char *forward, *backward;
};

/// Adds what pass.describe(scope) says, if the pass has it.
template <class Pass>
void describe_pass(TraceScope& scope, const Pass& pass) {
  if constexpr (requires { pass.describe(scope); }) pass.describe(scope);
}

/// Collective. Returns pass.forward(driver); if `recorded`, its record calls pass.backward(driver, gradient),
/// once and on all ranks.
template <class Pass>
Variable run_pass(const Driver& driver, PassNames names, bool recorded, Pass pass) {
  TypedRows out;
  {
    TraceScope scope(names.forward, TraceKind::compute);
    describe_pass(scope, pass);
    out = pass.forward(driver);
  }
  if (!recorded) return out;
  return record_collective(driver.graph().comm, std::move(out),
                           [driver, names, pass = std::move(pass)](TypedRows grad) mutable {
                             TraceScope scope(names.backward, TraceKind::compute);
                             describe_pass(scope, pass);
                             pass.backward(driver, std::move(grad));
                           });
}
/// The same with the driver of a pass whose gradients depend on the values of source rows.
template <class Pass>
Variable run_pass(const Graph& graph, PassNames names, bool recorded, Pass pass) {
  return run_pass(Driver(graph.shards(), graph.options(), recorded), names, recorded, std::move(pass));
}
}}  // namespace sar
