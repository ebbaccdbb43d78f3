// SPDX-License-Identifier: MIT

/// Batch normalization over the nodes of all ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/threads/rank_sums.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/module.hpp>


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
  static std::vector<double> exact_backward_sums(const Call& call, const TypedRows& grad,
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

}}  // namespace sar
