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

#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/message/driver.hpp>
#include <sar/graph/message/started_sum.hpp>

#include <memory>
#include <optional>
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

/// The backward pass of an operation that was started and finished, as two records. The record of the result
/// computes, and sends gradients to their owners; the record of the start, which comes later in the backward
/// pass, adds the gradients that have arrived. Between them, the tape differentiates what ran between start
/// and finish.
class SplitBackward {
 public:
  /// Records the second half. `gradient`: of the source rows; null if it is not required.
  SplitBackward(const Communicator& comm, GradientPtr gradient);

  /// Collective. The first half, in the record of the result: `start` calls BackwardPass::start(). Failures
  /// of both halves are thrown on all ranks.
  void run(FunctionRef<void(BackwardPass& pass)> start) const;

 private:
  Communicator comm_;
  GradientPtr gradient_;
  std::shared_ptr<BackwardPass> pass_ = std::make_shared<BackwardPass>();
  GradientPtr second_half_;  // `signal_` added to it lets the tape run the second half
  Tensor signal_ = Tensor(Shape{0});
};

/// A sum whose source rows are in flight. The pass of the operation has
///
///     Driver driver() const
///     const TypedRows& source_rows() const                 those that travel
///     bool recorded() const                                whether a gradient of its operands is wanted
///     const GradientPtr& source_gradient() const           of the rows that travel; null: not wanted
///     Shape shape() const                                  of the result
///     NumberType base_type() const                         as StartedSum::base_type()
///     bool adds_to_base() const                            false: finish() adds the result to a base
///     TypedRows forward(ForwardPass&, Variable base)
///     void release(bool recorded)                          drops what backward() does not read
///     void backward(const Driver&, BackwardPass&, TypedRows grad)
///
/// and is moved into the record of the result.
template <class Pass>
class StartedPass final : public StartedSum::Operation {
 public:
  StartedPass(const Communicator& comm, Pass pass)
      : pass_(std::move(pass)), driver_(pass_.driver()), rows_(start(comm)) {}

  [[nodiscard]] Shape shape() const override { return pass_.shape(); }
  [[nodiscard]] NumberType base_type() const override { return pass_.base_type(); }
  Variable finish(Variable base) override {
    if (base.defined() && !pass_.adds_to_base()) return add(std::move(base), finish({}));
    const GradientPtr base_gradient = Tape::current() != nullptr ? base.gradient() : nullptr;
    TypedRows out = pass_.forward(rows_, std::move(base));
    if (!split_ && base_gradient == nullptr) return out;
    pass_.release(split_.has_value());
    return record(std::move(out), [base_gradient, pass = std::move(pass_), driver = driver_,
                                   split = split_](TypedRows grad) mutable {
      if (base_gradient != nullptr) base_gradient->add(grad);
      if (!split) return;
      split->run([&](BackwardPass& rows) { pass.backward(driver, rows, std::exchange(grad, {})); });
    });
  }
  void discard() override { rows_.discard(); }
  [[nodiscard]] bool in_flight() const override { return rows_.in_flight(); }

 private:
  ForwardPass start(const Communicator& comm) {
    if (pass_.recorded()) split_.emplace(comm, pass_.source_gradient());
    return {driver_, pass_.source_rows()};
  }

  Pass pass_;
  Driver driver_;
  std::optional<SplitBackward> split_;
  ForwardPass rows_;
};
}}  // namespace sar
