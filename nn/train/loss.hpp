/// Losses of distributed predictions: each rank holds some of the rows, and the loss is the mean over the
/// rows of ALL ranks.
///
/// Every function is collective: one all_reduce in the forward pass, none in the backward pass. The value,
/// [1], is the loss over all rows, with the same bits on every rank; the backward pass gives each rank the
/// gradient of its own rows. If the input of one rank is invalid, all ranks throw the same exception; the
/// loss, its options and the width of the rows must be the same on all ranks.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the cross entropy over the M rows of all ranks with a nonzero mask and a label:
///
///     -1/M sum_i log softmax(logits_i)[labels_i]
///
/// logits [n, C], labels [n] and mask [n] for the n rows of this rank. A row with label -1 is unlabelled and
/// left out. Labels outside the mask are ignored and may be anything. Throws ShapeError if lengths differ,
/// InputError if a label in the mask is not in -1 .. C-1 or if M = 0.
Variable cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                       std::span<const std::uint8_t> mask, const Communicator& comm);

/// The same as a part of another loss: `call` is compared between the ranks in place of the number of
/// classes.
Variable cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                       std::span<const std::uint8_t> mask, const Communicator& comm,
                       const CollectiveCall& call);

/// Returns the binary cross entropy, the mean over all elements of
///
///     -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x))
///
/// in a form that neither overflows nor cancels. logits x and target t in [0, 1] have the same shape; the
/// target gets no gradient. Throws ShapeError if the shapes differ, InputError if no rank has a row.
Variable bce_with_logits(const Variable& logits, const Tensor& target, const Communicator& comm);

/// Returns the mean over all elements of (prediction - target)^2. Both have the same shape and may require a
/// gradient. Throws ShapeError if the shapes differ, InputError if no rank has a row.
Variable mse(const Variable& prediction, const Variable& target, const Communicator& comm);

/// Returns the mean over all elements of |prediction - target| (torch's l1_loss). The gradient at 0 is 0.
/// Shapes and errors as in mse().
Variable l1(const Variable& prediction, const Variable& target, const Communicator& comm);

/// Returns the mean over all elements d = prediction - target of
///
///     |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)
///
/// (torch's huber_loss). Shapes and errors as in mse(), and InputError unless delta > 0.
Variable huber(const Variable& prediction, const Variable& target, const Communicator& comm,
               double delta = 1);

/// Returns the fraction of rows, of all ranks, with a nonzero mask and a label, whose largest logit (the
/// first one of equal logits) is that of the label. Rows with label -1 are left out, as by OGB's evaluator.
/// NaN if no row is left. A row with a NaN counts as wrong. Throws like cross_entropy for lengths and labels.
double accuracy(const Tensor& logits, std::span<const std::int64_t> labels,
                std::span<const std::uint8_t> mask, const Communicator& comm);

}}  // namespace sar
