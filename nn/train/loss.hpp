// SPDX-License-Identifier: MIT

/// Losses of distributed predictions: each rank holds some of the rows, and the loss is the mean over the
/// rows of ALL ranks. Also losses of derivatives.
///
/// Every function is collective: one all_reduce in the forward pass, none in the backward pass. The value,
/// [1], is the loss over all rows, with the same bits on every rank; the backward pass gives each rank the
/// gradient of its own rows. If the input of one rank is invalid, all ranks throw the same exception; the
/// loss, its options and the width of the rows must be the same on all ranks.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The options of torch's CrossEntropyLoss, and weights of the rows.
struct CrossEntropyOptions {
  std::span<const double> class_weights = {};  ///< [C]; empty: all 1
  double label_smoothing = 0;
  /// [n] on every rank or none. With them the loss is a sum in which row i counts row_weights[i] times,
  /// without them it is a mean.
  std::optional<std::span<const real>> row_weights = std::nullopt;
};

/// Returns the cross entropy over the M rows of all ranks with a nonzero mask and a label:
///
///     -1/M sum_i log softmax(logits_i)[labels_i]
///
/// logits [n, C], labels [n] and mask [n] for the n rows of this rank. A row with label -1 is unlabelled and
/// left out. Labels outside the mask are ignored and may be anything. Throws ShapeError if lengths differ,
/// InputError if a label in the mask is not in -1 .. C-1 or if M = 0.
///
/// With class weights w and label smoothing s, as torch's CrossEntropyLoss, where y_i is the label of row i:
///
///     1 / sum_i w[y_i]  sum_i ((1 - s) w[y_i] L_i[y_i] + s / C sum_c w[c] L_i[c]),   L_i = -log softmax(logits_i)
///
/// With row weights a (SaintLoader), the sum over the rows of a_i times the terms of row i, which is not
/// divided by anything and may have no rows.
///
/// Also throws InputError unless there are C weights of 0 or more, for a mean one above 0 among those of the
/// labels, s is from 0 to 1, and row weights are 0 or more; ShapeError unless there is a weight for each row.
/// Options are the same on all ranks, except the numbers in row_weights.
Variable cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                       std::span<const std::uint8_t> mask, const Communicator& comm,
                       const CrossEntropyOptions& options = {});

/// The same as a part of another loss: `call` is compared between the ranks in place of the number of
/// classes.
Variable cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                       std::span<const std::uint8_t> mask, const Communicator& comm,
                       const CollectiveCall& call);

/// Returns the class weights by which all classes count the same (scikit-learn's class_weight="balanced"):
///
///     w_c = M / (K n_c)
///
/// n_c of the M rows of all ranks with a nonzero mask and a label are of class c, and K classes have such
/// rows. A class without rows has weight 0. Throws like cross_entropy for labels, ShapeError if lengths
/// differ.
std::vector<double> balanced_class_weights(std::span<const std::int64_t> labels,
                                           std::span<const std::uint8_t> mask, Index num_classes,
                                           const Communicator& comm);

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

// Losses of rows of a mask whose targets may be missing: regression, and several labels a row.
//
// prediction and target [n, T] for the n rows of this rank, mask [n]. The loss is the mean over the elements
// of all ranks that are in a row with a nonzero mask and whose target is not NaN; the others get no
// gradient, and the target gets none. With row weights a [n], on every rank or none, it is the sum over
// these elements of a_i times the term of an element of row i. Every function is collective as those
// above are. Throws ShapeError if shapes or lengths differ, InputError if no element of any rank
// has a target, and for row weights that are negative or not finite.

using RowWeights = std::optional<std::span<const real>>;

/// Returns the mean binary cross entropy of logits x and targets t in [0, 1], as OGB's examples compute it
/// for several labels a node:
///
///     -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x))
Variable bce_with_logits(const Variable& logits, const Tensor& target, std::span<const std::uint8_t> mask,
                         const Communicator& comm, const RowWeights& row_weights = std::nullopt);

/// Returns the mean of (prediction - target)^2.
Variable mse(const Variable& prediction, const Tensor& target, std::span<const std::uint8_t> mask,
             const Communicator& comm, const RowWeights& row_weights = std::nullopt);

/// Returns the mean of |prediction - target|. The gradient at 0 is 0.
Variable l1(const Variable& prediction, const Tensor& target, std::span<const std::uint8_t> mask,
            const Communicator& comm, const RowWeights& row_weights = std::nullopt);

/// Returns the mean of the Huber loss above. InputError, too, unless delta > 0.
Variable huber(const Variable& prediction, const Tensor& target, std::span<const std::uint8_t> mask,
               const Communicator& comm, const RowWeights& row_weights = std::nullopt, double delta = 1);

// Losses of a network's results and of their derivatives in its inputs: forces, stresses, Sobolev training.

/// y = f(x_0, x_1, ...), computed by a network.
using SlopeFunction = std::function<Variable(const std::vector<Variable>& inputs)>;
/// Returns the loss [1] of y and the slopes g_k, as the losses of nn/modules/reductions.hpp.
using SlopeLoss = std::function<Variable(const Variable& y, const std::vector<Variable>& slopes)>;

struct ValueAndSlopes {
  Tensor value;                ///< y
  std::vector<Tensor> slopes;  ///< d (sum of y) / d x_k, in the shape of x_k
};

/// Returns f(x) and its slopes. The caller needs no tape; gradients of parameters stay unchanged. Collective
/// if f is.
ValueAndSlopes value_and_slopes(const SlopeFunction& f, const std::vector<Tensor>& inputs);

/// Adds the gradients of L(y, g) to all variables that f reads and that require one, where
///
///     y = f(x)        g_k = d (sum of y) / d x_k
///
/// and returns L. For y an energy of all ranks, as PotentialNetwork::energy(), forces are -g. The slopes cost
/// a forward and a backward pass of f. With a = dL/dy and v = dL/dg as constants, a pass of f on dual
/// variables (autograd/variable.hpp) then gives the gradients, exactly:
///
///     dL/dtheta = d/dtheta (sum of a y + sum of the tangent of y),    x_k with the tangent v_k
///
/// `f` is called twice and must compute the same both times. Throws InputError, with its name, if f uses an
/// operation without a tangent; Error if no gradient is required. Collective if f or loss is; an exception
/// is then the same on every rank if theirs is.
///
/// @code
/// const Linear net(2, 1, gen);
/// const auto f = [&](const std::vector<Variable>& x) { return net(x[0] * x[0]); };
/// backward_slope_loss(f, {Tensor::full({5, 2}, 1)}, [&](const Variable& y, const std::vector<Variable>& g) {
///   return mean(y * y, comm) + mean(g[0] * g[0], comm);
/// });
/// @endcode
double backward_slope_loss(const SlopeFunction& f, const std::vector<Tensor>& inputs, const SlopeLoss& loss);
}}  // namespace sar
