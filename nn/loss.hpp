/// Losses of a distributed prediction: each rank holds some rows; the loss is the mean over those of ALL
/// ranks.
///
/// Every function is collective (one all_reduce in the forward pass, none in the backward pass). The value, a
/// tensor of shape [1], is the loss of the whole problem, the same bits on every rank; in the backward pass
/// each rank gets the gradient of its own rows. When the input of one rank is wrong, all ranks throw the same
/// exception.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>

#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION {

/// Over the M rows of all ranks where the mask is not 0:
///
///     -1/M sum_i log softmax(logits_i)[labels_i]
///
/// logits [n, C], labels [n], mask [n] for the n rows of this rank. A label outside the mask may be anything,
/// for example -1. Throws ShapeError when lengths differ, InputError when a label in the mask is not in 0 ..
/// C-1 and when M = 0.
Variable cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                       std::span<const std::uint8_t> mask, const Communicator& comm);

/// The mean over all elements of
///
///     -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x))
///
/// in a form that neither overflows nor cancels. logits x and target t in [0, 1] have the same shape; the
/// target gets no gradient. Throws ShapeError when shapes differ, InputError when no rank has a row.
Variable bce_with_logits(const Variable& logits, const Tensor& target, const Communicator& comm);

/// The mean over all elements of (prediction - target)^2; both have the same shape and may want a gradient.
/// Throws ShapeError when shapes differ, InputError when no rank has a row.
Variable mse(const Variable& prediction, const Variable& target, const Communicator& comm);

/// The mean over all elements of |prediction - target| (torch's l1_loss), with slope 0 at 0; otherwise as
/// mse().
Variable l1(const Variable& prediction, const Variable& target, const Communicator& comm);

/// The mean over all elements d = prediction - target of
///
///     |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)
///
/// (torch's huber_loss); otherwise as mse(). Throws InputError, too, unless delta > 0.
Variable huber(const Variable& prediction, const Variable& target, const Communicator& comm,
               double delta = 1);

/// Of the rows of all ranks where the mask is not 0: the fraction whose largest logit (the first of equals)
/// is that of the label. NaN when the mask is empty everywhere. A row with a NaN counts as wrong. Throws like
/// cross_entropy when lengths differ.
double accuracy(const Tensor& logits, std::span<const std::int64_t> labels,
                std::span<const std::uint8_t> mask, const Communicator& comm);

}  // namespace sar
