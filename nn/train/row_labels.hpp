// SPDX-License-Identifier: MIT

/// Which rows losses and metrics count: those in the mask that have a label; their mean. For implementation
/// files.
#pragma once

#include <sar/comm/exact_sums.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/loss.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/threads/parallel.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Throws ShapeError unless there are a label and an element of the mask for each row of logits [n, C].
inline void require_rows(const Shape& logits, std::span<const std::int64_t> labels,
                         std::span<const std::uint8_t> mask) {
  require<ShapeError>(logits.dims() == 2, "logits have shape ", logits, ", expected [rows, classes]");
  require<ShapeError>(std::ssize(labels) == logits[0] && mask.size() == labels.size(), "logits have ",
                      logits[0], " rows, but there are ", labels.size(), " labels and a mask of ",
                      mask.size());
}

/// Returns the label of each row, or -1 outside the mask and for an unlabelled row.
inline Array<std::int32_t> targets_of(std::span<const std::int64_t> labels,
                                      std::span<const std::uint8_t> mask, Index classes) {
  Array<std::int32_t> targets(labels.size());
  for (Index i = 0; i < std::ssize(labels); ++i) {
    require<InputError>(mask[i] == 0 || (labels[i] >= -1 && labels[i] < classes), "label ", labels[i],
                        " of row ", i, ", which is in the mask, is not one of the ", classes,
                        " classes, and not -1 (unlabelled)");
    targets[i] = mask[i] != 0 ? static_cast<std::int32_t>(labels[i]) : -1;
  }
  return targets;
}

/// Throws ShapeError unless scores and targets have the same shape [n, T] and the mask has n elements.
inline void require_target_rows(const char* name, const Tensor& scores, const Tensor& targets,
                                std::span<const std::uint8_t> mask) {
  require<ShapeError>(scores.shape().dims() == 2 && scores.shape() == targets.shape(), name,
                      ": predictions have shape ", scores.shape(), ", targets ", targets.shape(),
                      ", expected the same shape [rows, columns]");
  require<ShapeError>(std::ssize(mask) == scores.num_rows(), name, ": predictions have ", scores.num_rows(),
                      " rows and the mask ", mask.size());
}

/// Throws unless there is a weight of 0 or more for each of the rows.
inline void require_row_weights(const char* name, std::span<const real> weights, Index rows) {
  require<ShapeError>(std::ssize(weights) == rows, name, ": there are ", weights.size(), " row weights for ",
                      rows, " rows");
  for (std::size_t i = 0; i < weights.size(); ++i)
    require<InputError>(weights[i] >= 0 && std::isfinite(weights[i]), name, ": the weight of row ", i, " is ",
                        weights[i], ", expected a finite number of 0 or more");
}

/// Returns whether an element counts: its row is in the mask, and its target is not NaN.
inline bool is_labelled(std::span<const std::uint8_t> mask, const Tensor& targets, Index row, Index column) {
  return mask[row] != 0 && !std::isnan(targets.row(row)[column]);
}

// The mean of the terms of a loss over all ranks. For implementation files.

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
