#include <sar/core/error.hpp>
#include <sar/nn/models/layer_stack.hpp>
#include <sar/nn/modules/relu_dropout.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns whether the first layer may cache the aggregate of its input: no dropout precedes it, and the
/// aggregate is not wider than the layer's output, which the backward pass needs in any case.
bool caches_input(const ModelType& type, const ModelDescription& d, const LayerSize& first) {
  return type.caches && !(type.drops_inputs && d.dropout > 0) && first.in <= first.out();
}

}  // namespace

std::vector<LayerSize> layer_sizes(const ModelDescription& d) {
  const bool attends = model_type(d.type).attends();
  std::vector<LayerSize> sizes;
  for (Index i = 1; i <= d.layers; ++i) {
    const bool last = i == d.layers;
    LayerSize& size = sizes.emplace_back();
    size.in = i == 1 ? d.in_feats : d.hidden;
    if (attends) size.heads = last ? d.out_heads : d.heads;
    size.head = last ? d.out_feats : d.hidden / size.heads;
    size.mean = last && size.heads > 1;
    size.residual = attends && d.residual > 0 && i >= d.residual;
  }
  return sizes;
}

std::string describe_layers(const ModelDescription& d) {
  std::string text = concat(d.type, ": ", d.in_feats);
  for (const LayerSize& size : layer_sizes(d)) {
    text += concat(" -> ", size.out());
    if (size.heads > 1)
      text += size.mean ? concat(" (the mean of ", size.heads, " heads)")
                        : concat(" (", size.heads, " heads of ", size.head, ")");
    if (size.residual) text += " + residual";
  }
  if (d.gcn_norm == "weights") text += ", normalized by the sums of out- and in-edge weights";
  if (d.gcn_norm == "in_weights") text += ", normalized by the sums of in-edge weights";
  return text;
}

Module& LayerStack::Convolutions::push_back(std::unique_ptr<Module> convolution) {
  register_module(std::to_string(modules_.size()), *convolution);
  modules_.push_back(std::move(convolution));
  return *modules_.back();
}

LayerStack::LayerStack(const ModelDescription& d, const Communicator& comm, Generator& gen, bool cached)
    : is_relu_(d.activation == "relu"),
      activation_(activation_of(d.activation)),
      input_dropout_(model_type(d.type).drops_inputs ? d.dropout : 0, gen) {
  const ModelType& type = model_type(d.type);
  list_ = type.list;
  std::vector<LayerSize> sizes = layer_sizes(d);
  sizes.front().cached = cached && caches_input(type, d, sizes.front());
  for (const LayerSize& size : sizes) {
    StackConvolution made = type.make({d, size, comm, gen});
    Module& convolution = convolutions_.push_back(std::move(made.module));
    calls_.push_back(std::move(made.apply));
    if (!type.inner_bias.empty()) convolution.freeze(type.inner_bias);
    if (convolutions_.size() == sizes.size()) break;
    if (d.norm == "batch") {
      // a residual connection with a projection has the bias (gatv2: one more)
      const std::string bias = size.residual && size.in != size.out() ? "res_fc.bias" : type.bias;
      if (!bias.empty()) convolution.freeze(bias);
      batch_norms_.emplace_back(d.hidden, comm);
    }
    if (d.norm == "layer") layer_norms_.emplace_back(d.hidden);
    dropouts_.emplace_back(d.dropout, gen);
  }
}

std::vector<std::pair<std::string, Module*>> LayerStack::parts() {
  return {{"input_dropout", &input_dropout_},
          {list_, &convolutions_},
          {"bns", &batch_norms_},
          {"norms", &layer_norms_},
          {"dropouts", &dropouts_}};
}

Variable LayerStack::operator()(const LayerGraphs& graphs, const Variable& x,
                                std::span<const GraphRelations> relations) {
  return after_layer(std::ssize(calls_), graphs, x, relations);
}

Variable LayerStack::after_layer(Index layer, const LayerGraphs& graphs, const Variable& x,
                                 std::span<const GraphRelations> relations) {
  static const GraphRelations none;
  const Transaction transaction;
  Variable h = input_dropout_.is_active() ? input_dropout_(x, graphs[0].src_ids()) : x;
  for (std::size_t i = 0;; ++i) {
    const GraphShardManager& graph = graphs[i];
    h = calls_[i](graph, h, relations.empty() ? none : relations[std::min(i, relations.size() - 1)]);
    if (i + 1 == calls_.size()) return h;
    h = between(i, graph, std::move(h));
    if (static_cast<Index>(i + 1) == layer) return h;
  }
}

/// Applies ReLU and dropout as one operation, fused with the batch norm if there is one.
Variable LayerStack::between(std::size_t layer, const GraphShardManager& graph, Variable y) {
  Dropout& dropout = dropouts_[layer];
  if (is_relu_ && !batch_norms_.empty())
    return batch_norm_relu_dropout(std::move(y), batch_norms_[layer], dropout, graph.dst_ids());
  if (!batch_norms_.empty()) y = batch_norms_[layer](std::move(y));
  if (!layer_norms_.empty()) y = layer_norms_[layer](y);
  if (is_relu_) return relu_dropout(std::move(y), dropout, graph.dst_ids());
  return dropout(activation_(std::move(y)), graph.dst_ids());
}

}}  // namespace sar
