// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/modules/mlp.hpp>

#include <string>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

MLP::MLP(Index in_feats, Index hidden_feats, Index out_feats, Generator& gen, const MLPOptions& options)
    : activation_(options.activation) {
  require<InputError>(options.hidden_layers >= 1, "an MLP of ", options.hidden_layers,
                      " hidden layers, expected 1 or more");
  require<InputError>(static_cast<bool>(options.activation), "an MLP without an activation");
  for (int i = 0; i <= options.hidden_layers; ++i) {
    const Index from = i == 0 ? in_feats : hidden_feats;
    const Index to = i == options.hidden_layers ? out_feats : hidden_feats;
    register_module(std::to_string(2 * i), linears_.emplace_back(from, to, gen));
  }
  if (options.layer_norm) make_module(std::to_string(2 * options.hidden_layers + 1), norm_, out_feats);
}

Variable MLP::rest(Variable first_result) const {
  Variable h = std::move(first_result);
  for (std::size_t i = 1; i < linears_.size(); ++i) {
    h = activation_(std::move(h));
    h = linears_[i](std::exchange(h, {}));
  }
  return norm_ ? (*norm_)(h) : h;
}

}}  // namespace sar
