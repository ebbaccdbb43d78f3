// SPDX-License-Identifier: MIT

/// ReproducibleScope: gradients and statistics whose bits do not depend on the number of ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/threads/rank_sums.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// During its lifetime, operations of the thread that made it sum over the rows of all ranks of `comm` so
/// that the bits do not depend on their order: gradients of weights, biases and norms, statistics of batch
/// norm. Operations that are recorded within it keep to it in the backward pass. Sums over edges need
/// GraphOptions::reproducible beside it; losses, metrics and sums over a communicator are exact in any case.
///
/// All ranks must record the same operations in the same order: the sums are collective calls of the backward
/// pass. Gradients of parameters are complete on rank 0 and 0 on other ranks, so that gather_grads() (with
/// average = false) gives all ranks the sum.
///
/// @code
/// Linear net(64, 4, gen);
/// const ReproducibleScope scope(comm);
/// Tape tape;
/// tape.backward(mean(net(features), comm));
/// gather_grads(comm, net);
/// @endcode
class ReproducibleScope {
 public:
  /// Local. `on`: false restores plain sums within an outer scope.
  explicit ReproducibleScope(const Communicator& comm, bool on = true);

 private:
  RankSumsScope scope_;
};

}}  // namespace sar
