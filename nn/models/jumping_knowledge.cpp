// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/nn/models/jumping_knowledge.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

JumpingKnowledge::JumpingKnowledge(const std::string& mode, Index layers, Index hidden, Index out_feats,
                                   Generator& gen)
    : Linear(mode == "cat" ? layers * hidden : hidden, out_feats, gen),
      mode_(mode == "cat"   ? Mode::cat
            : mode == "sum" ? Mode::sum
            : mode == "max" ? Mode::max
                            : Mode::last),
      layers_(layers),
      hidden_(hidden) {}

Variable JumpingKnowledge::add_layer(Variable so_far, Index layer, const Variable& h) const {
  if (mode_ == Mode::last) return layer + 1 == layers_ ? (*this)(h) : so_far;
  if (mode_ == Mode::max) return layer == 0 ? h : so_far + relu(h - so_far);
  const Variable of_layer =
      mode_ == Mode::cat ? slice_columns(weight(), layer * hidden_, (layer + 1) * hidden_) : weight();
  return layer == 0 ? linear(h, of_layer, bias()) : add_linear(std::move(so_far), h, of_layer);
}

Variable JumpingKnowledge::result(Variable so_far) const {
  return mode_ == Mode::max ? (*this)(so_far) : so_far;
}

}}  // namespace sar
