#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/linear.hpp>

namespace sar { inline namespace SAR_PRECISION {

Linear::Linear(Index in_features, Index out_features, Generator& gen, bool bias) {
  require<InputError>(in_features > 0 && out_features > 0, "a linear layer from ", in_features, " to ",
                      out_features, " features");
  weight_ = Variable(init::linear_uniform({out_features, in_features}, in_features, gen.next_stream()), true);
  register_parameter("weight", weight_);
  if (!bias) return;
  bias_ = Variable(init::linear_uniform({out_features}, in_features, gen.next_stream()), true);
  register_parameter("bias", bias_);
}

Variable Linear::operator()(const Variable& x) const {
  return linear(x, weight_, bias_);
}

}}  // namespace sar
