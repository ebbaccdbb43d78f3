// SPDX-License-Identifier: MIT

/// Normalization: BatchNorm over the nodes of all ranks, LayerNorm over a row, Normalizer of features.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/threads/rank_sums.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/module.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

struct ColumnMoments;
class DropoutMask;

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< weight of the new batch in the running statistics
  bool affine = true;     ///< learnable weight and bias
  bool local = false;     ///< use statistics of this rank's rows only; no communication
};

/// Batch normalization over the rows of all ranks, equivalent to torch.nn.BatchNorm1d (Ioffe & Szegedy, arXiv
/// 1502.03167):
///
///     y_ij = (x_ij - mean_j) / sqrt(var_j + eps) * weight_j + bias_j
///
/// In training, mean and (biased) var are those of the batch. They are merged in rank order from local means
/// and centered second moments, so that a large mean does not lose precision and every rank gets the same
/// bits. In evaluation they are running_mean and running_var, moving averages of the batches' mean and
/// unbiased variance.
///
/// Parameters: weight [num_features], ones; bias [num_features], zeros. Buffers: running_mean, zeros;
/// running_var, ones. Counter: num_batches_tracked. With `local`, each rank has its own running statistics; a
/// rank with fewer than two rows does not update them.
///
/// Normalization cancels the bias of a preceding layer. The gradient of that bias is zero up to rounding,
/// which Adam scales to full steps. Leave such a bias out, or freeze() it.
///
/// Collective in training unless local: one all_gather in the forward pass, one all_reduce in the backward
/// pass. A rank may have no rows.
class DistributedBN1D : public Module {
 public:
  /// Throws InputError unless num_features > 0, eps >= 0 and 0 <= momentum <= 1.
  DistributedBN1D(Index num_features, const Communicator& comm, const BatchNormOptions& options = {});

  /// Normalizes x [n, num_features]. The backward pass keeps x only. Throws ShapeError if x has another
  /// width, InputError in training if all ranks together have fewer than two rows.
  [[nodiscard]] Variable operator()(Variable x);

 private:
  struct Statistics;
  struct Call;
  class Rows;
  friend Variable batch_norm_relu_dropout(Variable x, DistributedBN1D& norm, Dropout& dropout,
                                          RowIds row_ids);

  /// Normalizes x and applies ReLU if `relu` and dropout unless `dropout` is null. Collective in training
  /// unless local.
  [[nodiscard]] Variable apply(Variable x, bool relu, Dropout* dropout, const RowIds& row_ids);
  [[nodiscard]] Variable normalized(Variable x, bool relu, const DropoutMask* mask, const RowIds& row_ids);
  /// Returns the statistics for x; in training, updates the running statistics.
  [[nodiscard]] Statistics statistics(const TypedRows& x);
  void track(const ColumnMoments& moments);
  static void pass_back(const Call& call, TypedRows grad, const GradientPtr& dx, const GradientPtr& dweight,
                        const GradientPtr& dbias, const Communicator& comm, const RankSumsPtr& ranks);
  /// Collective. The sums of batch_norm_backward_sums() over all ranks.
  static std::vector<ExactSum> exact_backward_sums(const Call& call, const TypedRows& grad,
                                                   const RankSums& ranks);

  Variable weight_, bias_;
  Tensor running_mean_, running_var_;
  Recoverable<std::uint64_t> num_batches_tracked_;
  Communicator comm_;
  BatchNormOptions options_;
};

/// Returns dropout(relu(norm(x)), row_ids), computed as one operation. The backward pass keeps x and one bit
/// per element; it recomputes the normalized values and the sign that ReLU depends on. While a tape records,
/// the result is evaluated lazily: linear layers read it in chunks, so that it is never in memory as a whole.
/// Values, gradients and random draws are those of the three separate operations. Collective like `norm`;
/// `row_ids` as in Dropout.
[[nodiscard]] Variable batch_norm_relu_dropout(Variable x, DistributedBN1D& norm, Dropout& dropout,
                                               RowIds row_ids);

// LayerNorm over the features of each row, equivalent to torch.nn.LayerNorm.

/// For x [n, features], n >= 0:
///
///     y_ij = (x_ij - mean_i) / sqrt(var_i + eps) * weight_j + bias_j
///
/// mean_i and var_i (biased) are those of row i. Parameters: weight [features], ones; bias [features], zeros.
/// The backward pass keeps x only.
class LayerNorm : public Module {
 public:
  /// Throws InputError unless features > 0 and eps >= 0.
  explicit LayerNorm(Index features, double eps = 1e-5, bool affine = true);
  /// Throws ShapeError if x has another width.
  [[nodiscard]] Variable operator()(const Variable& x) const;

 private:
  Variable weight_, bias_;
  Index features_;
  double eps_;
};

// Normalization of features by the mean and deviation of all rows seen so far.

/// Normalizes columns of different units before a network and restores the units after it:
///
/// @code
/// Normalizer of_state(4, comm);
/// const Tensor state = Tensor::full({graph.num_nodes(), 4}, 1e5);
/// of_state.update(state);                               // once, or in every step with new rows
/// GraphConv net(4, 4, gen);
/// const Variable y = of_state.inverse(net(graph, of_state(state)));
/// @endcode
///
///     normalized_ij = (x_ij - mean_j) / std_j        inverse_ij = x_ij std_j + mean_j
///
/// mean_j and std_j (biased) are taken over all rows of all ranks in all updates. They are merged without
/// cancellation, with the same bits on every rank. A column counts as constant if its deviation is not above
/// the rounding error of its mean; its std_j is 1, so that normalized values are 0. Before the first update,
/// both functions are the identity.
///
/// Buffers, saved in weight files and checkpoints: mean and std [features], and mean_low and std_low, the
/// digits of both that do not fit in `real`. Counter, also part of state_dict(): count, the number of rows.
class Normalizer : public Module {
 public:
  /// Throws InputError unless num_features > 0.
  Normalizer(Index num_features, const Communicator& comm);

  /// Collective. Adds the rows x [n, num_features] of all ranks; a rank may have none. Throws ShapeError if
  /// the width does not match and InputError for a value that is not finite, and then changes nothing.
  void update(const Tensor& x);

  /// Local. Returns the normalized rows of x [n, num_features]. The backward pass keeps num_features
  /// values. Throws ShapeError if the width does not match.
  [[nodiscard]] Variable operator()(Variable x) const;
  /// Local. Returns the inverse: inverse((*this)(x)) is x up to rounding.
  [[nodiscard]] Variable inverse(Variable x) const;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }  ///< number of rows; local
  [[nodiscard]] const Tensor& mean() const noexcept { return mean_; }    ///< [num_features]; local
  [[nodiscard]] Tensor std() const;                                      ///< [num_features]; local

 private:
  void check_width(const Shape& shape) const;

  Tensor mean_, mean_low_, std_, std_low_;
  Recoverable<std::uint64_t> count_;
  Communicator comm_;
};
}}  // namespace sar
