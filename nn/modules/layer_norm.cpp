// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/layer_norm.hpp>

namespace sar { inline namespace SAR_PRECISION {

LayerNorm::LayerNorm(Index features, double eps, bool affine) : features_(features), eps_(eps) {
  require<InputError>(features > 0 && eps >= 0, "LayerNorm over ", features, " features with eps ", eps);
  if (!affine) return;
  register_parameter("weight", weight_, Tensor::full({features}, 1));
  register_parameter("bias", bias_, Tensor::zeros({features}));
}

Variable LayerNorm::operator()(const Variable& x) const {
  require<ShapeError>(x.shape().dims() == 2 && x.shape().row_size() == features_, "LayerNorm over ",
                      features_, " features got a tensor of shape ", x.shape());
  return layer_norm(x, weight_, bias_, eps_);
}

}}  // namespace sar
