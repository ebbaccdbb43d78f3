#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/models/layer_stack.hpp>
#include <sar/nn/modules/relu_dropout.hpp>

#include <map>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Adds the parameter with that name; "" adds nothing.
void add_parameter(const Module& module, const std::string& name, std::vector<Variable>& parameters) {
  if (name.empty()) return;
  const std::vector<NamedParameter> all = module.named_parameters();
  const auto found = std::ranges::find(all, name, &NamedParameter::name);
  require(found != all.end(), "the convolution has no parameter ", name);
  parameters.push_back(found->parameter);
}

/// Records an operation whose backward step runs after those of all operations that the tape records from now
/// on, and clears these gradients.
void forget_after_backward(const std::vector<Variable>& parameters) {
  Tape* const tape = Tape::current();
  if (tape == nullptr || parameters.empty()) return;
  const auto at_last = std::make_shared<Gradient>(Shape{1});
  at_last->add(Tensor::zeros({1}));  // a record runs only if its output has a gradient
  tape->record(at_last, [parameters](const Tensor&) {
    for (Variable parameter : parameters) parameter.zero_grad();
  });
}

}  // namespace

Activation activation_of(const std::string& name) {
  static const std::map<std::string, Activation> all{
      {"none", [](Variable y) { return y; }},
      {"relu", [](Variable y) { return relu(std::move(y)); }},
      {"leaky_relu", [](Variable y) { return leaky_relu(std::move(y)); }},
      {"elu", [](Variable y) { return elu(std::move(y)); }},
      {"gelu", [](Variable y) { return gelu(std::move(y)); }},
      {"silu", [](Variable y) { return silu(std::move(y)); }},
      {"tanh", [](Variable y) { return tanh(std::move(y)); }},
      {"sigmoid", [](Variable y) { return sigmoid(std::move(y)); }},
      {"softplus", [](Variable y) { return softplus(std::move(y)); }},
  };
  return all.at(name);
}

Module& LayerStack::Convolutions::push_back(std::unique_ptr<Module> convolution) {
  register_module(std::to_string(modules_.size()), *convolution);
  modules_.push_back(std::move(convolution));
  return *modules_.back();
}

LayerStack::LayerStack(const StackType& type, const ModelDescription& d, const std::vector<LayerSize>& sizes,
                       const Communicator& comm, Generator& gen, const Make& make)
    : list_(type.list),
      is_relu_(d.activation == "relu"),
      activation_(activation_of(d.activation)),
      input_dropout_(type.drops_inputs ? d.dropout : 0, gen) {
  for (const LayerSize& size : sizes) {
    const Module& convolution = convolutions_.push_back(make(size));
    add_parameter(convolution, type.inner_bias, normalized_biases_);
    if (convolutions_.size() == sizes.size()) break;
    // a residual connection with a projection has the bias (gatv2: one more)
    const bool projects = size.residual && size.in != size.out();
    if (d.norm == "batch") {
      add_parameter(convolution, projects ? "res_fc.bias" : type.bias, normalized_biases_);
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

Variable LayerStack::operator()(std::size_t layers, const LayerGraphs& graphs, const Variable& x,
                                const Apply& apply) {
  const Transaction transaction;
  forget_after_backward(normalized_biases_);
  Variable h = input_dropout_.is_active() ? input_dropout_(x, graphs[0].src_ids()) : x;
  for (std::size_t i = 0;; ++i) {
    const GraphShardManager& graph = graphs[i];
    h = apply(i, graph, h);
    if (i + 1 == convolutions_.size()) return h;
    h = between(i, graph, std::move(h));
    if (i + 1 == layers) return h;
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
