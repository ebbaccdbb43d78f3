/// LSTM over sequences of different lengths.
#pragma once

#include <sar/nn/init.hpp>
#include <sar/nn/module.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// One layer, one direction, as torch.nn.LSTM:
///
///     (i, f, g, o) = x_t W_ih^T + b_ih + h_{t-1} W_hh^T + b_hh
///     c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g)        h_t = sigmoid(o) tanh(c_t)        c_0 = h_0 = 0
///
/// Parameters, uniform in +-1/sqrt(hidden) at the start: weight_ih_l0 [4 hidden, in], weight_hh_l0 [4 hidden,
/// hidden], bias_ih_l0 and bias_hh_l0 [4 hidden].
class LSTM : public Module {
 public:
  /// Throws InputError unless both widths are positive.
  LSTM(Index in_feats, Index hidden, Generator& gen);

  /// The last hidden state of each sequence, [sequences, hidden]; 0 for a sequence of no step. Sequences are
  /// sorted by length, the longest first: step t reads the next step_rows[t] rows of x [all steps, in], one
  /// for each of the first step_rows[t] sequences. Keeps about 8 hidden + in values for each row of x. Throws
  /// ShapeError when the numbers do not fit.
  [[nodiscard]] Variable last_hidden(const Variable& x, std::span<const Index> step_rows,
                                     Index sequences) const;

 private:
  Variable weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};

}  // namespace sar
