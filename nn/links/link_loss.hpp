// SPDX-License-Identifier: MIT

/// Losses of link prediction. They compare the scores of pairs that are edges (positives) with the scores of
/// pairs that are not (negatives).
///
/// Every function is collective and has the meaning and errors of nn/train/loss.hpp. Each rank has some
/// pairs, or none; the loss is the mean over the pairs of ALL ranks, [1], with the same bits on every rank.
/// The backward pass does not communicate. Throws InputError on every rank if no rank has a pair.
///
/// Scores are [n], [n, 1] or any shape with n elements. Losses that compare each positive with its own
/// negatives take k negatives per positive, [n, k] or [n k, 1], with the negatives of one positive adjacent.
/// Throws ShapeError if the numbers do not match.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the binary cross entropy over n positives and m negatives; n and m are independent:
///
///     -1/(n + m) (sum_i log sigmoid(p_i) + sum_j log(1 - sigmoid(q_j)))
Variable link_bce_with_logits(const Variable& positive, const Variable& negative, const Communicator& comm);

/// Returns the margin loss between each positive and its k negatives, as in DGL's guide:
///
///     1/(n k) sum_ij max(0, margin - p_i + q_ij)
Variable link_margin(const Variable& positive, const Variable& negative, const Communicator& comm,
                     double margin = 1);

/// Returns the InfoNCE loss of each positive and its k negatives (van den Oord et al., arXiv 1807.03748), at
/// temperature t > 0:
///
///     -1/n sum_i log(exp(p_i / t) / (exp(p_i / t) + sum_j exp(q_ij / t)))
///
/// Also throws InputError unless t > 0.
Variable info_nce(const Variable& positive, const Variable& negative, const Communicator& comm,
                  double temperature = 1);

}}  // namespace sar
