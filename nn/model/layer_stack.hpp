/// A stack of convolutions of any class, with what lies between them.
#pragma once

#include <sar/graph/build/message_flow_graph.hpp>
#include <sar/nn/batch_norm.hpp>
#include <sar/nn/dropout.hpp>
#include <sar/nn/layer_norm.hpp>
#include <sar/nn/model/model_description.hpp>
#include <sar/nn/model/stack_convolution.hpp>
#include <sar/nn/module.hpp>
#include <sar/nn/module_list.hpp>
#include <sar/nn/row_function.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The function that a checked description names, one of ModelDescription::activations(). Local.
[[nodiscard]] Activation activation_of(const std::string& name);

/// With f the activation, h = x in front of the first of L layers, for l = 0 .. L - 2:
///
///     h = dropout(f(norm(conv_l(h))))    y = conv_{L - 1}(h)
///
/// norm is batch norm over the rows of all ranks, layer norm, or none. Where the type drops inputs, x goes
/// through a dropout first. The stack computes for the module that owns it, which registers its parts():
///
///     input_dropout          in front of the first convolution, where the type drops inputs
///     convs or layers        the convolutions, "0", "1", ...
///     bns, norms             batch norms, layer norms
///     dropouts
class LayerStack {
 public:
  /// The convolution of a layer.
  using Make = std::function<std::unique_ptr<Module>(const LayerSize&)>;
  /// Computes a layer, counted from 0: x [local sources, in] -> [local destinations, out].
  using Apply = std::function<Variable(std::size_t layer, const GraphShardManager&, const Variable& x)>;

  /// Of a checked description norm, activation, dropout and hidden are read; `sizes` has a layer or more.
  /// Local.
  LayerStack(const StackType& type, const ModelDescription& description, const std::vector<LayerSize>& sizes,
             const Communicator& comm, Generator& gen, const Make& make);
  LayerStack(const LayerStack&) = delete;
  LayerStack& operator=(const LayerStack&) = delete;

  /// Their names and the modules, which live as long as this.
  [[nodiscard]] std::vector<std::pair<std::string, Module*>> parts();

  /// x [local sources of the first graph, in] -> the result of the first `layers` convolutions [local
  /// destinations of the last of their graphs, out], with norm, activation and dropout behind it unless these
  /// are all convolutions. Errors are those of `apply`. Collective.
  Variable operator()(std::size_t layers, const LayerGraphs& graphs, const Variable& x, const Apply& apply);

  /// As NodeClassifier::forget_noise() and GraphModel::forget_noise() say. Local.
  void forget_noise();

 private:
  /// As ModuleList, of modules of any class.
  class Convolutions : public Module {
   public:
    Module& push_back(std::unique_ptr<Module> convolution);
    [[nodiscard]] std::size_t size() const { return modules_.size(); }

   private:
    std::vector<std::unique_ptr<Module>> modules_;
  };

  /// What lies behind convolution `layer`.
  [[nodiscard]] Variable between(std::size_t layer, const GraphShardManager& graph, Variable y);

  std::string list_;
  bool is_relu_;
  Activation activation_;
  Dropout input_dropout_;
  Convolutions convolutions_;
  ModuleList<DistributedBN1D> batch_norms_;
  ModuleList<LayerNorm> layer_norms_;
  ModuleList<Dropout> dropouts_;
  std::vector<Variable> normalized_biases_;  // in front of a batch norm
};

}  // namespace sar
