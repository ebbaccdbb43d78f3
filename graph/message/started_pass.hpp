// SPDX-License-Identifier: MIT

/// StartedPass: a sum over in-edges between its start and its end (started_sum.hpp). For implementing
/// operations.
#pragma once

#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/graph/message/driver.hpp>
#include <sar/graph/message/started_sum.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

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
