// SPDX-License-Identifier: MIT

/// Because sequences are sorted by decreasing length, the sequences that still run at step t are the first
/// rows of h and c. Each step is one product with W_ih for the rows of the step and one with W_hh; the states
/// of sequences that end are set aside.
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/lstm.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

LSTM::LSTM(Index in_feats, Index hidden, Generator& gen) {
  require<InputError>(in_feats > 0 && hidden > 0, "LSTM from ", in_feats, " to ", hidden, " features");
  const auto make = [&](const char* name, Variable& parameter, const Shape& shape) {
    register_parameter(name, parameter, init::linear_uniform(shape, hidden, gen.next_stream()));
  };
  make("weight_ih_l0", weight_ih_, {4 * hidden, in_feats});
  make("weight_hh_l0", weight_hh_, {4 * hidden, hidden});
  make("bias_ih_l0", bias_ih_, {4 * hidden});
  make("bias_hh_l0", bias_hh_, {4 * hidden});
}

Variable LSTM::last_hidden(const Variable& x, std::span<const Index> step_rows, Index sequences) const {
  const Index hidden = weight_hh_.shape()[1];
  require<ShapeError>(x.shape() == Shape{std::accumulate(step_rows.begin(), step_rows.end(), Index{0}),
                                         weight_ih_.shape()[1]} &&
                          std::is_sorted(step_rows.rbegin(), step_rows.rend()) &&
                          (step_rows.empty() || step_rows.front() <= sequences),
                      "LSTM: rows of shape ", x.shape(), " do not fit the sequences' lengths");
  if (step_rows.empty())  // x still gets a gradient, without rows: its producer may be collective
    return linear(scatter_add_rows(x, std::vector<Index>(), sequences),
                  Tensor::zeros({hidden, weight_ih_.shape()[1]}));
  std::vector<Variable> ended;  // states of the sequences that have ended, the shortest first
  const auto end_sequences = [&](const Variable& h, Index running, Index still_running) {
    if (still_running < running)
      ended.push_back(h.defined() ? slice_rows(h, still_running, running)
                                  : Variable(Tensor::zeros({running - still_running, hidden})));
  };
  Variable h, c;
  Index row = 0, running = sequences;
  for (const Index rows : step_rows) {
    end_sequences(h, running, rows);
    Variable gates = linear(slice_rows(x, row, row + rows), weight_ih_, bias_ih_ + bias_hh_);
    if (h.defined()) gates = std::move(gates) + linear(slice_rows(h, 0, rows), weight_hh_);
    const auto gate = [&](int k) { return slice_columns(gates, k * hidden, (k + 1) * hidden); };
    const Variable fresh = sigmoid(gate(0)) * tanh(gate(2));
    c = c.defined() ? sigmoid(gate(1)) * slice_rows(c, 0, rows) + fresh : fresh;
    h = sigmoid(gate(3)) * tanh(c);
    row += rows;
    running = rows;
  }
  ended.push_back(slice_rows(h, 0, running));  // also without rows: the backward pass takes all steps
  if (step_rows.size() == 1)                   // no step has read W_hh, whose gradient is 0, as torch's
    ended.push_back(slice_columns(linear(Tensor::zeros({0, hidden}), weight_hh_), 0, hidden));
  std::reverse(ended.begin(), ended.end());
  return concat_rows(ended);
}

}}  // namespace sar
