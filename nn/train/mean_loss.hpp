// SPDX-License-Identifier: MIT

/// The mean of the terms of a loss over all ranks. For implementation files.
#pragma once

#include <sar/comm/exact_sums.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/loss.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/threads/parallel.hpp>

#include <array>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the sums over all ranks of what `local` returns. `call` must be the same on all ranks.
inline SumAndCount sum_over_ranks(const Communicator& comm, const CollectiveCall& call,
                                  FunctionRef<SumAndCount()> local) {
  const SumAndCount mine = local();
  const CallScope compared(comm, call);
  const std::vector<ExactSum> sums = exact_sum_over_ranks(comm, std::array{mine.sum, mine.count});
  return {sums[0], sums[1]};
}

struct MeanLoss {
  Tensor value;  // [1]
  double count = 0;
};

/// Returns the mean over all ranks of the terms that `local` sums, or with `is_sum` their sum, whose count is
/// 1. If there are no terms, or only such of weight 0, a mean is an error, whose message is the loss's name
/// followed by `nothing`, and a sum is 0.
inline MeanLoss mean_over_ranks(const Communicator& comm, const CollectiveCall& call,
                                FunctionRef<SumAndCount()> local, const char* nothing = " of no elements",
                                bool is_sum = false) {
  const SumAndCount total = sum_over_ranks(comm, call, local);
  require<InputError>(is_sum || total.count.value() > 0, call.operation(), nothing);
  const double count = is_sum ? 1 : total.count.value();
  return {Tensor::full({1}, static_cast<real>(total.sum.value() / count)), count};
}
}}  // namespace sar
