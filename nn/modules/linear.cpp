// SPDX-License-Identifier: MIT
#include <sar/autograd/arithmetic.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/linear.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Linear::Linear(Index in_features, Index out_features, Generator& gen, bool bias) {
  require<InputError>(in_features > 0 && out_features > 0, "a linear layer from ", in_features, " to ",
                      out_features, " features");
  const auto make = [&](const char* name, Variable& parameter, const Shape& shape) {
    register_parameter(name, parameter, init::linear_uniform(shape, in_features, gen.next_stream()));
  };
  make("weight", weight_, {out_features, in_features});
  if (bias) make("bias", bias_, {out_features});
}

Variable Linear::add_to(Variable base, const Variable& x) const {
  Variable y = add_linear(std::move(base), x, weight_);
  return bias_.defined() ? add(std::move(y), bias_) : y;
}
}}  // namespace sar
