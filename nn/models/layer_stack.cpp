// SPDX-License-Identifier: MIT

// Memory of a training step, for each node: what the convolutions keep, and h_l or, if a batch norm, ReLU and
// dropout made it, what they normalize. A linear residual connection and the final linear layer keep nothing
// else; an identity and jk `max` need h_l itself.
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/global_pooling.hpp>
#include <sar/nn/models/layer_stack.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns whether the first layer may cache the aggregate of its input: it is constant, and the aggregate is
/// not wider than the layer's output, which the backward pass needs in any case.
bool caches_input(const ModelType& type, const ModelDescription& d, const LayerSize& first) {
  return type.caches && *d.input_dropout == 0 && !d.pre_linear && first.in <= first.out();
}

/// Freezes the bias that a batch norm over all rows cancels. The bias of a relation is one of the rows of a
/// node type: it cancels where there is one type.
void freeze_bias(Module& convolution, const ModelType& type, const std::string& bias, Index node_types) {
  if (bias.empty() || (type.by_relation && node_types > 1)) return;
  if (!type.by_relation) return convolution.freeze(bias);
  for (const NamedParameter& each : convolution.named_parameters())
    if (each.name.ends_with("." + bias)) convolution.freeze(each.name);
}

}  // namespace

Module& LayerStack::LayerModules::put(std::size_t layer, std::unique_ptr<Module> module) {
  register_module(std::to_string(layer), *module);
  modules_.push_back(std::move(module));
  return *modules_.back();
}

LayerStack::LayerStack(const ModelDescription& description, const Communicator& comm, Generator& gen,
                       bool cached)
    : description_(description.checked("the model")),
      is_relu_(description_.activation == "relu"),
      activation_(activation_of(description_.activation)),
      input_dropout_(*description_.input_dropout, gen) {
  const ModelDescription& d = description_;
  if (d.pre_linear) {
    lin_in_.emplace(d.in_feats, d.hidden, gen);
    lin_in_dropout_.emplace(d.dropout, gen);
  }
  std::vector<LayerSize> sizes = layer_sizes(d);
  sizes.front().cached = cached && caches_input(model_type(d.type), d, sizes.front());
  for (const LayerSize& size : sizes) add_layer(size, comm, gen);
  if (has_head(d)) head_.emplace(d.jk, d.layers, d.hidden, d.head_layers > 1 ? d.hidden : d.out_feats, gen);
  for (Index i = 2; i <= d.head_layers; ++i) {
    mlp_dropouts_.emplace_back(d.dropout, gen);
    mlp_.emplace_back(d.hidden, i == d.head_layers ? d.out_feats : d.hidden, gen);
  }
  for (const auto& [name, part] : parts()) register_module(name, *part);
}

void LayerStack::add_layer(const LayerSize& size, const Communicator& comm, Generator& gen) {
  const ModelDescription& d = description_;
  const ModelType& type = model_type(d.type);
  const std::size_t l = layers_.size();
  StackConvolution made = type.make({d, size, comm, gen});
  Module& convolution = convolutions_.put(l, std::move(made.module));
  Layer& layer = layers_.emplace_back();
  layer.convolution = std::move(made.apply);
  layer.is_identity = size.residual == LayerResidual::identity;
  if (size.residual == LayerResidual::linear)
    layer.linear =
        static_cast<const Linear*>(&linears_.put(l, std::make_unique<Linear>(size.in, size.out(), gen)));
  if (!type.inner_bias.empty()) convolution.freeze(type.inner_bias);
  if (std::ssize(layers_) == d.layers && !has_head(d)) return;
  if (d.norm == "batch") {
    // a residual connection of the convolution has the bias if it has a projection (gatv2: one more)
    const bool projects = size.residual == LayerResidual::own && size.in != size.out();
    freeze_bias(convolution, type, projects ? "res_fc.bias" : type.bias, std::ssize(d.node_types));
    if (layer.linear != nullptr) linears_.freeze(concat(l, ".bias"));
    batch_norms_.emplace_back(d.hidden, comm);
  }
  if (d.norm == "layer") layer_norms_.emplace_back(d.hidden);
  dropouts_.emplace_back(d.dropout, gen);
}

std::vector<std::pair<std::string, Module*>> LayerStack::parts() {
  std::vector<std::pair<std::string, Module*>> parts{{"input_dropout", &input_dropout_}};
  if (lin_in_) parts.insert(parts.end(), {{"lin_in", &*lin_in_}, {"lin_in_dropout", &*lin_in_dropout_}});
  parts.emplace_back(model_type(description_.type).list, &convolutions_);
  if (!linears_.empty()) parts.emplace_back("lins", &linears_);
  parts.insert(parts.end(), {{"bns", &batch_norms_}, {"norms", &layer_norms_}, {"dropouts", &dropouts_}});
  if (head_) parts.emplace_back("lin", &*head_);
  if (!mlp_.empty()) parts.insert(parts.end(), {{"mlp", &mlp_}, {"mlp_dropouts", &mlp_dropouts_}});
  return parts;
}

Variable LayerStack::operator()(const LayerGraphs& graphs, const Variable& x,
                                std::span<const GraphRelations> relations) {
  require<InputError>(!has_readout(description_), "a network with the readout ", description_.readout,
                      " on a graph, expected a SampleBatch, whose graphs it reads out");
  const Transaction transaction;
  const Index rows = graphs[layers_.size() - 1].num_dst_nodes();
  return run(graphs, x, relations, [rows](const Variable& h) { return slice_rows(h, 0, rows); });
}

Variable LayerStack::operator()(const SampleBatch& batch, const Variable& x,
                                std::span<const GraphRelations> relations) {
  require<InputError>(has_readout(description_),
                      "a network without a readout on a SampleBatch, expected one with a readout, or graph() "
                      "of the batch");
  const Transaction transaction;
  const Reduce reduce = std::ranges::find(reduce_names, description_.readout, &EnumName<Reduce>::name)->value;
  Variable y =
      run(batch.graph(), x, relations, [&](const Variable& h) { return readout_nodes(batch, h, reduce); });
  const RowIds ids(std::span<const Index>(batch.samples().ids), batch.shared_samples());
  for (std::size_t i = 0; i < mlp_.size(); ++i) y = mlp_[i](mlp_dropouts_[i](activation_(std::move(y)), ids));
  return y;
}

Variable LayerStack::run(const LayerGraphs& graphs, const Variable& x,
                         std::span<const GraphRelations> relations,
                         FunctionRef<Variable(const Variable&)> reduce) {
  Variable h = input(graphs[0], x), of_layers;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    h = output(l, graphs, std::move(h), relations);
    const auto layer = static_cast<Index>(l);
    if (head_ && head_->reads(layer)) of_layers = head_->add_layer(std::move(of_layers), layer, reduce(h));
  }
  return head_ ? head_->result(std::move(of_layers)) : h;
}

Variable LayerStack::after_layer(Index layer, const LayerGraphs& graphs, const Variable& x,
                                 std::span<const GraphRelations> relations) {
  const Transaction transaction;
  Variable h = input(graphs[0], x);
  for (std::size_t l = 0; l < layers_.size() && static_cast<Index>(l) < layer; ++l)
    h = output(l, graphs, std::move(h), relations);
  return h;
}

Variable LayerStack::input(const Graph& graph, const Variable& x) {
  Variable h = input_dropout_.is_active() ? input_dropout_(x, graph.src_ids()) : x;
  return lin_in_ ? (*lin_in_dropout_)((*lin_in_)(h), graph.src_ids()) : h;
}

Variable LayerStack::output(std::size_t l, const LayerGraphs& graphs, Variable h,
                            std::span<const GraphRelations> relations) {
  static const GraphRelations none;
  const Graph& graph = graphs[l];
  const Layer& layer = layers_[l];
  Variable y = layer.convolution(
      graph, h, relations.empty() ? none : relations[std::min(l, relations.size() - 1)], layer.linear);
  if (layer.is_identity) y = std::move(y) + slice_rows(h, 0, graph.num_dst_nodes());
  h = {};
  return l < dropouts_.size() ? activate(l, graph, std::move(y)) : y;
}

/// Applies ReLU and dropout as one operation, fused with the batch norm if there is one.
Variable LayerStack::activate(std::size_t l, const Graph& graph, Variable y) {
  Dropout& dropout = dropouts_[l];
  if (is_relu_ && !batch_norms_.empty())
    return batch_norm_relu_dropout(std::move(y), batch_norms_[l], dropout, graph.dst_ids());
  if (!batch_norms_.empty()) y = batch_norms_[l](std::move(y));
  if (!layer_norms_.empty()) y = layer_norms_[l](y);
  if (is_relu_) return relu_dropout(std::move(y), dropout, graph.dst_ids());
  return dropout(activation_(std::move(y)), graph.dst_ids());
}

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
