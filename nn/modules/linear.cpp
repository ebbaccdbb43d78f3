// SPDX-License-Identifier: MIT
#include <sar/autograd/arithmetic.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/relation_key.hpp>

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

HeteroLinear::HeteroLinear(const std::map<std::string, Index>& in_sizes, Index out_size, Generator& gen,
                           bool bias) {
  register_module("linears", linears_);
  for (const auto& [type, in_size] : in_sizes) {
    const auto linear = of_type_.try_emplace(type, in_size, out_size, gen, bias).first;
    linears_.register_module(relation_key(type), linear->second);
  }
}

HeteroLinear::Rows HeteroLinear::operator()(const Rows& x) const {
  Rows y;
  for (const auto& [type, rows] : x) {
    const auto linear = of_type_.find(type);
    require<InputError>(linear != of_type_.end(), "HeteroLinear got rows of the type '", type,
                        "', for which it has no linear map");
    y.emplace(type, linear->second(rows));
  }
  return y;
}

TypedLinear::TypedLinear(Index in_size, Index out_size, Index num_types, Generator& gen,
                         const TypedLinearOptions& options)
    : in_size_(in_size), out_size_(out_size), num_types_(num_types), options_(options) {
  require<InputError>(in_size > 0 && out_size > 0 && num_types > 0 && options.num_bases >= 0,
                      "TypedLinear from ", in_size, " to ", out_size, " features with ", num_types,
                      " types and ", options.num_bases, " bases");
  if (options_.num_bases == 0) options_.num_bases = num_types;
  const Index bases = options_.num_bases;
  const bool basis = options.regularizer == Regularizer::basis, bdd = options.regularizer == Regularizer::bdd;
  require<InputError>(!bdd || (in_size % bases == 0 && out_size % bases == 0), "TypedLinear from ", in_size,
                      " to ", out_size, " features in ", bases, " blocks");
  const Shape shape = bdd ? Shape{num_types, in_size * out_size / bases}
                          : Shape{basis ? bases : num_types, in_size, out_size};
  const Index fan_in = bdd ? in_size / bases : in_size;
  register_parameter("W", weight_, init::linear_uniform(shape, fan_in, gen.next_stream()));
  if (!basis) return;
  const Shape coefficients{num_types, bases};
  register_parameter("coeff", coeff_, init::xavier_uniform(coefficients, init::relu_gain, gen.next_stream()));
}

Variable TypedLinear::matrices() const {
  const Index bases = options_.num_bases;
  switch (options_.regularizer) {
    case Regularizer::none:
      return weight_;
    case Regularizer::basis:
      return reshape(matmul(coeff_, reshape(weight_, {bases, in_size_ * out_size_})),
                     {num_types_, in_size_, out_size_});
    case Regularizer::bdd:
      return reshape(weight_, {num_types_, bases, in_size_ / bases, out_size_ / bases});
  }
  return {};
}

Variable TypedLinear::operator()(Variable x, std::span<const Index> types) const {
  return gather_mm(std::move(x), matrices(), types);
}

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
