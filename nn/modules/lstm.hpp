// SPDX-License-Identifier: MIT

/// LSTM over sequences of different lengths.
#pragma once

#include <sar/nn/modules/module.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// One layer in one direction, equivalent to torch.nn.LSTM:
///
///     (i, f, g, o) = x_t W_ih^T + b_ih + h_{t-1} W_hh^T + b_hh
///
///     c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g)        h_t = sigmoid(o) tanh(c_t)
///
/// with c_0 = h_0 = 0. Parameters, initialized uniformly in +-1/sqrt(hidden): weight_ih_l0 [4 hidden, in],
/// weight_hh_l0 [4 hidden, hidden], bias_ih_l0 and bias_hh_l0 [4 hidden].
class LSTM : public Module {
 public:
  /// Throws InputError unless both widths are positive.
  LSTM(Index in_feats, Index hidden, Generator& gen);

  /// Returns the last hidden state of each sequence, [sequences, hidden]; 0 for an empty sequence. Sequences
  /// are sorted by decreasing length: step t reads the next step_rows[t] rows of x [all steps, in], one for
  /// each of the first step_rows[t] sequences. Local, but for a ReproducibleScope, where all ranks give the
  /// same number of steps, the last ones without rows where sequences are shorter. The backward pass keeps
  /// about 8 hidden + in values per row of x. Throws ShapeError if the numbers of rows do not match.
  [[nodiscard]] Variable last_hidden(const Variable& x, std::span<const Index> step_rows,
                                     Index sequences) const;

 private:
  Variable weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};

}}  // namespace sar
