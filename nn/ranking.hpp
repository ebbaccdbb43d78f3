/// How well scores tell edges (positives) from other pairs (negatives), over the scores of all ranks.
///
/// Every function is collective and exact: it counts, and gives the same bits on every rank and for any
/// number of ranks. A rank may have no scores. Throws InputError, the same on every rank, when no rank has a
/// positive (a negative), and for a score that is NaN. Equal scores are ties; -0 equals 0.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor.hpp>

namespace sar::inline SAR_PRECISION {

/// The area under the ROC curve: the share of pairs of a positive and a negative in which the positive has
/// the larger score, ties counted as a half.
///
/// The scores are sorted over the ranks: each rank sorts its own and sends every distinct one once. A rank
/// receives about twice its share at most, 24 bytes a score, and P^2 samples of 8 bytes.
double roc_auc(const Tensor& positive, const Tensor& negative, const Communicator& comm);

/// OGB's "Hits at K": the share of positives whose score is above that of the K-th best negative of all; 1 when
/// there are fewer than K negatives. Throws InputError, too, unless K >= 1.
///
/// Eight all_reduces of 2 KiB find the K-th best; a rank takes 8 bytes for each of its negatives.
double hits_at_k(const Tensor& positive, const Tensor& negative, Index k, const Communicator& comm);

/// OGB's MRR: the mean over the positives of 1 / rank, where negatives are those of the positive itself,
///
///     rank = 1 + number of better negatives + 1/2 number of equal ones
///
/// positive [n] or [n, 1]; negative [n, k], where k may differ between ranks of the communicator. One
/// all_reduce of 16 k bytes, how many positives have which rank. Throws ShapeError for other shapes.
double mean_reciprocal_rank(const Tensor& positive, const Tensor& negative, const Communicator& comm);

}  // namespace sar
