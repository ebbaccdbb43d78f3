/// Batch normalization over the nodes of all workers.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/dropout.hpp>
#include <sar/nn/module.hpp>

#include <optional>

namespace sar::inline SAR_PRECISION {

struct ColumnMoments;
class DropoutMask;

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< weight of the new statistics in the running ones
  bool affine = true;     ///< learn weight and bias
  bool local = false;     ///< statistics of this rank's rows only; no communication
};

/// Batch normalization of the rows of all ranks together, as torch.nn.BatchNorm1d (Ioffe & Szegedy, arXiv
/// 1502.03167):
///
///     y_ij = (x_ij - mean_j) / sqrt(var_j + eps) * weight_j + bias_j
///
/// In training, mean and (biased) var are those of the batch. They come from local means and centred second
/// moments, merged in rank order: a large mean costs no digits, and every rank gets the same bits. In
/// evaluation they are running_mean and running_var, moving averages of the batches' mean and unbiased
/// variance.
///
/// Parameters: weight [num_features] of ones, bias [num_features] of zeros. Buffers: running_mean of zeros,
/// running_var of ones. Counter: num_batches_tracked. With `local`, each rank has running statistics of its
/// own; a rank with fewer than two rows leaves them as they are.
///
/// Statistics take a bias of the layer in front out again: its gradient is zero but for rounding, and Adam
/// turns that into full steps. Leave such a bias out, or zero_grad() it before gather_grads.
///
/// Collective in training unless local: one all_gather in the forward pass, one all_reduce in the backward
/// pass. A rank may have no rows.
class DistributedBN1D : public Module {
 public:
  /// Throws InputError unless num_features > 0, eps >= 0 and 0 <= momentum <= 1.
  DistributedBN1D(Index num_features, const Communicator& comm, const BatchNormOptions& options = {});

  /// x [n, num_features]. Only x is kept for the backward pass. Throws ShapeError when x has another width,
  /// InputError in training when all ranks together have fewer than two rows.
  [[nodiscard]] Variable operator()(Variable x);

 private:
  struct Statistics;
  struct Call;
  class Rows;
  friend Variable batch_norm_relu_dropout(Variable x, DistributedBN1D& norm, Dropout& dropout,
                                          RowIds row_ids);

  /// With ReLU and dropout behind it, unless `mask` is null.
  [[nodiscard]] Variable apply(Variable x, bool relu, const DropoutMask* mask, const RowIds& row_ids);
  /// `seen`: the moments that the running statistics move by. Collective in training unless local.
  [[nodiscard]] Variable normalized(Variable x, bool relu, const DropoutMask* mask, const RowIds& row_ids,
                                    std::optional<ColumnMoments>& seen) const;
  [[nodiscard]] Statistics statistics(const Tensor& x, std::optional<ColumnMoments>& seen) const;
  void track(const ColumnMoments& moments);
  static void pass_back(const Call& call, Tensor grad, const GradientPtr& dx, const GradientPtr& dweight,
                        const GradientPtr& dbias, const Communicator& comm);

  Variable weight_, bias_;
  Tensor running_mean_, running_var_;
  std::uint64_t num_batches_tracked_ = 0;
  Communicator comm_;
  BatchNormOptions options_;
};

/// dropout(relu(norm(x)), row_ids) as one operation that keeps x and a bit an element for the backward pass:
/// the normalized values and the sign that ReLU looks at are computed again. While a tape records, the result
/// is computed when it is read, and linear layers read it in chunks: it is never in memory as a whole.
/// Values, gradients and draws are those of the three operations. Collective like `norm`; `row_ids` as in
/// Dropout.
[[nodiscard]] Variable batch_norm_relu_dropout(Variable x, DistributedBN1D& norm, Dropout& dropout,
                                               RowIds row_ids);

}  // namespace sar
