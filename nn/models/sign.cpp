// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/models/sign.hpp>

#include <algorithm>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

Tensor sign_features(const Graph& graph, const Tensor& x, int hops, HopNorm norm) {
  return graph.comm().agree([&] {
    require<InputError>(hops >= 0, "sign_features: ", hops, " hops, expected 0 or more");
    require_can_propagate(graph, x);
    const CallScope compared(graph.comm(),
                             CollectiveCall("sign_features").equal("hops", hops).equal("norm", norm));
    const NoTape constant;
    const Index width = x.row_size();
    Tensor features({x.num_rows(), (hops + 1) * width});
    Variable hop = x;
    for (Index i = 0; i <= hops; ++i) {
      if (i > 0) hop = propagate(graph, hop, norm);
      const Tensor& rows = hop.value();
      for (Index v = 0; v < rows.num_rows(); ++v)
        std::copy_n(rows.row(v), width, features.row(v) + i * width);
    }
    return features;
  });
}

SIGN::PReLU::PReLU() : weight_(Tensor::full({1}, static_cast<real>(0.25)), true) {
  register_parameter("weight", weight_);
}

Variable SIGN::PReLU::operator()(const Variable& x) const {
  const Variable positive = relu(x);
  return positive + weight_ * (x - positive);  // the derivative at 0 is the weight, as in PyTorch
}

SIGN::FeedForward::FeedForward(Index in, Index hidden, Index out, Generator& gen, const SIGNOptions& options)
    : dropout_(options.dropout, gen) {
  require<InputError>(options.layers >= 1, "SIGN with ", options.layers, " layers, expected 1 or more");
  register_module("layers", layers_);
  for (int i = 0; i < options.layers; ++i) {
    const Linear& layer =
        layers_.emplace_back(i == 0 ? in : hidden, i + 1 == options.layers ? out : hidden, gen);
    start_weight(layer, init::xavier_uniform(layer.weight().shape(), init::relu_gain, gen.next_stream()));
    Variable(layer.bias()).value().fill(0);
  }
  if (options.layers > 1) register_module("prelu", prelu_);
  register_module("dropout", dropout_);
}

Variable SIGN::FeedForward::operator()(Variable x, const RowIds& row_ids) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i](x);
    if (i + 1 < layers_.size()) x = dropout_(prelu_(x), row_ids);
  }
  return x;
}

SIGN::SIGN(Index in_feats, Index hidden, Index out_feats, Generator& gen, const SIGNOptions& options)
    : in_feats_(in_feats),
      dropout_(options.dropout, gen),
      project_((std::max(options.hops, 0) + 1) * hidden, hidden, out_feats, gen, options) {
  require<InputError>(options.hops >= 0, "SIGN with ", options.hops, " hops, expected 0 or more");
  register_module("dropout", dropout_);
  register_module("prelu", prelu_);
  register_module("inception_ffs", inception_ffs_);
  register_module("project", project_);
  for (int i = 0; i <= options.hops; ++i) inception_ffs_.emplace_back(in_feats, hidden, hidden, gen, options);
}

Variable SIGN::operator()(const Variable& x, const RowIds& row_ids) {
  const Transaction transaction;
  const auto hops = static_cast<Index>(inception_ffs_.size());
  require_rows(x, x.num_rows(), hops * in_feats_, "SIGN, features");
  std::vector<Variable> hidden;
  for (Index i = 0; i < hops; ++i)
    hidden.push_back(inception_ffs_[static_cast<std::size_t>(i)](
        slice_columns(x, i * in_feats_, (i + 1) * in_feats_), row_ids));
  return project_(dropout_(prelu_(concat_columns(hidden)), row_ids), row_ids);
}

}}  // namespace sar
