// SPDX-License-Identifier: MIT

/// Metrics of how well scores separate edges (positives) from other pairs (negatives), over the scores of all
/// ranks. ROC-AUC and average precision, which nodes have, too, are in nn/train/binary_metrics.hpp.
///
/// Every function is collective and exact: it counts, and returns the same bits on every rank and for any
/// number of ranks. A rank may have no scores. Throws InputError on every rank if no rank has a positive, or
/// no rank has a negative, or a score is NaN. Equal scores are ties; -0 equals 0.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/nn/train/binary_metrics.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Returns OGB's Hits at K: the fraction of positives whose score is above the K-th best of all negatives, or
/// 1 if there are fewer than K negatives. Also throws InputError unless K >= 1.
///
/// Finds the K-th best negative with eight all_reduces of 2 KiB. Memory: 8 bytes per local negative.
double hits_at_k(const Tensor& positive, const Tensor& negative, Index k, const Communicator& comm);

/// Returns OGB's MRR: the mean over the positives of 1 / rank, where each positive is ranked among its own
/// negatives:
///
///     rank = 1 + number of larger scores + 1/2 number of equal scores
///
/// positive [n] or [n, 1]; negative [n, k], where k may differ between ranks of the communicator. One
/// all_reduce of 16 k bytes counts the positives of each rank value. Throws ShapeError for other shapes.
double mean_reciprocal_rank(const Tensor& positive, const Tensor& negative, const Communicator& comm);

}}  // namespace sar
