/// Losses of link prediction: scores of pairs that are edges (positives) and of pairs that are not
/// (negatives).
///
/// Every function is collective, with the meaning and the errors of nn/loss.hpp: each rank has some pairs, or
/// none; the loss is the mean over those of ALL ranks, [1], the same bits on every rank, and the backward
/// pass does not communicate. Throws InputError, the same on every rank, when no rank has a pair. Scores are
/// [n], [n, 1] or any shape with as many elements; where negatives belong to a positive, there are k for
/// each, [n, k] or [n k, 1], those of a positive one after the other. Throws ShapeError when there are not.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>

namespace sar::inline SAR_PRECISION {

/// Binary cross entropy over n positives and m negatives, any numbers of both:
///
///     -1/(n + m) (sum_i log sigmoid(p_i) + sum_j log(1 - sigmoid(q_j)))
Variable link_bce_with_logits(const Variable& positive, const Variable& negative, const Communicator& comm);

/// Each positive against its k negatives, as in DGL's guide:
///
///     1/(n k) sum_ij max(0, margin - p_i + q_ij)
Variable link_margin(const Variable& positive, const Variable& negative, const Communicator& comm,
                     double margin = 1);

/// Each positive against its k negatives (van den Oord et al., arXiv 1807.03748), at temperature t > 0:
///
///     -1/n sum_i log(exp(p_i / t) / (exp(p_i / t) + sum_j exp(q_ij / t)))
///
/// Throws InputError, too, unless t > 0.
Variable info_nce(const Variable& positive, const Variable& negative, const Communicator& comm,
                  double temperature = 1);

}  // namespace sar
