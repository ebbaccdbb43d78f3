// SPDX-License-Identifier: MIT

/// SplitBackward: the backward pass of an operation that was started and finished (started_sum.hpp), as two
/// records. The record of the result computes, and sends gradients to their owners; the record of the start,
/// which comes later in the backward pass, adds the gradients that have arrived. Between them, the tape
/// differentiates what ran between start and finish.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/graph/message/driver.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
