/// A stack of convolutions of any class, with normalization, activation and dropout between them.
#pragma once

#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/models/stack_convolution.hpp>
#include <sar/nn/modules/batch_norm.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/layer_norm.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/module_list.hpp>
#include <sar/nn/modules/row_function.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the function for the activation of a checked description, one of ModelDescription::activations().
/// Local.
[[nodiscard]] Activation activation_of(const std::string& name);

/// Computes L layers with the activation f. With h = x before the first layer, for l = 0 .. L - 2:
///
///     h = dropout(f(norm(conv_l(h))))
///
///     y = conv_{L - 1}(h)
///
/// norm is batch norm over the rows of all ranks, layer norm, or none. For types that drop inputs, x passes
/// through a dropout first. The stack is not a module itself; the module that owns it registers its parts():
///
///     input_dropout          before the first convolution, for types that drop inputs
///     convs or layers        the convolutions, "0", "1", ...
///     bns, norms             batch norms, layer norms
///     dropouts
class LayerStack : NonCopyable {
 public:
  /// Creates the convolution of a layer.
  using Make = std::function<std::unique_ptr<Module>(const LayerSize&)>;
  /// Computes a layer, numbered from 0: x [local sources, in] -> [local destinations, out].
  using Apply = std::function<Variable(std::size_t layer, const GraphShardManager&, const Variable& x)>;

  /// Reads norm, activation, dropout and hidden of a checked description. `sizes` has at least one layer.
  /// Local.
  LayerStack(const StackType& type, const ModelDescription& description, const std::vector<LayerSize>& sizes,
             const Communicator& comm, Generator& gen, const Make& make);

  /// Returns names and modules to register. The modules live as long as this object.
  [[nodiscard]] std::vector<std::pair<std::string, Module*>> parts();

  /// Applies the first `layers` convolutions: x [local sources of the first graph, in] -> [local destinations
  /// of the last of their graphs, out]. The last one of them is followed by norm, activation and dropout
  /// unless it is the last of the stack. Errors are those of `apply`. Collective.
  Variable operator()(std::size_t layers, const LayerGraphs& graphs, const Variable& x, const Apply& apply);

 private:
  /// Like ModuleList, but for modules of any class.
  class Convolutions : public Module {
   public:
    Module& push_back(std::unique_ptr<Module> convolution);
    [[nodiscard]] std::size_t size() const { return modules_.size(); }

   private:
    std::vector<std::unique_ptr<Module>> modules_;
  };

  /// Applies norm, activation and dropout after convolution `layer`.
  [[nodiscard]] Variable between(std::size_t layer, const GraphShardManager& graph, Variable y);

  std::string list_;
  bool is_relu_;
  Activation activation_;
  Dropout input_dropout_;
  Convolutions convolutions_;
  ModuleList<DistributedBN1D> batch_norms_;
  ModuleList<LayerNorm> layer_norms_;
  ModuleList<Dropout> dropouts_;
  /// Biases that a batch norm cancels. Their gradients are zero up to rounding, which Adam would scale to
  /// full steps; they therefore get no gradient.
  std::vector<Variable> normalized_biases_;
};

}}  // namespace sar
