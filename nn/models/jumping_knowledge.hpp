// SPDX-License-Identifier: MIT

/// The linear layer after the convolutions of a stack.
#pragma once

#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Xu et al., arXiv 1806.03536. Of the outputs h_1, ..., h_L [n, hidden] of L layers, it computes
///
///     last:  y = W h_L + b
///
///     sum:   y = W (h_1 + ... + h_L) + b
///
///     max:   y = W max(h_1, ..., h_L) + b      (of each element)
///
///     cat:   y = W [h_1, ..., h_L] + b
///
/// as torch_geometric's BasicGNN with `jk` does; sum, which that does not have, is that of arXiv 2406.08993.
/// The outputs arrive one after another. sum and cat add up the products of each layer, so that neither the
/// sum nor the concatenation is ever in memory.
///
/// Parameters: weight W [out, hidden], cat: [out, L hidden]; bias b [out]. Initialized as Linear.
class JumpingKnowledge : public Linear {
 public:
  /// `mode` is one of the four names. Throws InputError unless the widths are positive.
  JumpingKnowledge(const std::string& mode, Index layers, Index hidden, Index out_feats, Generator& gen);

  /// Local. Adds the output h [n, hidden] of the next layer, counted from 0, to `so_far`, which is
  /// undefined before the first one, and returns both together.
  [[nodiscard]] Variable add_layer(Variable so_far, Index layer, const Variable& h) const;

  /// Local. Returns whether the result depends on the output of this layer, counted from 0.
  [[nodiscard]] bool reads(Index layer) const noexcept { return mode_ != Mode::last || layer + 1 == layers_; }

  /// Local. Returns y [n, out] of the outputs of all layers.
  [[nodiscard]] Variable result(Variable so_far) const;

 private:
  enum class Mode { last, sum, max, cat };

  Mode mode_;
  Index layers_, hidden_;
};

}}  // namespace sar
