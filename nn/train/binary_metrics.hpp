// SPDX-License-Identifier: MIT

/// Metrics of how well scores separate positives from negatives, over the scores of all ranks.
///
/// Every function is collective and exact: the scores of all ranks are sorted together. A rank may have no
/// scores. Throws InputError on every rank if no rank has a positive, or no rank has a negative, or a score
/// is NaN. Equal scores are ties; -0 equals 0.
///
/// Each rank sorts its own scores and sends each distinct one once. A rank receives at most about twice its
/// share, 24 bytes per score, and P^2 samples of 8 bytes.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the area under the ROC curve: the fraction of (positive, negative) pairs in which the positive has
/// the larger score. Ties count as 1/2 (scikit-learn's roc_auc_score). The bits are the same for any number
/// of ranks.
double roc_auc(const Tensor& positive, const Tensor& negative, const Communicator& comm);

/// Returns the average precision (scikit-learn's average_precision_score), the sum over the distinct scores s
/// in descending order
///
///     sum_s (R_s - R_before) P_s
///
/// where recall R_s is the fraction of the positives that score s or more, and precision P_s the fraction of
/// positives among all that score s or more.
double average_precision(const Tensor& positive, const Tensor& negative, const Communicator& comm);

/// Scores as score_keys.hpp makes them.
struct ScoreKeys {
  Array<std::uint64_t> positives, negatives;
};
/// The same of keys.
double roc_auc(const ScoreKeys& scores, const Communicator& comm);
double average_precision(const ScoreKeys& scores, const Communicator& comm);

}}  // namespace sar
