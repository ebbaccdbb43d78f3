/// A stack of convolutions of any class, with normalization, activation and dropout between them.
#pragma once

#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/models/relations.hpp>
#include <sar/nn/modules/batch_norm.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/layer_norm.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/module_list.hpp>
#include <sar/nn/modules/row_function.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the sizes of a stack's layers, from the first to the last; no layer is cached. Local.
[[nodiscard]] std::vector<LayerSize> layer_sizes(const ModelDescription& description);

/// Returns a summary of a stack, such as "gat: 1433 -> 64 (8 heads of 8) -> 7 (the mean of 8 heads)". Local.
[[nodiscard]] std::string describe_layers(const ModelDescription& description);

/// Computes L layers with the activation f. With h = x before the first layer, for l = 0 .. L - 2:
///
///     h = dropout(f(norm(conv_l(h))))
///
///     y = conv_{L - 1}(h)
///
/// norm is batch norm over the rows of all ranks, layer norm, or none. A bias that a batch norm cancels is
/// frozen: its gradient is zero up to rounding, which Adam would scale to full steps. For types that drop
/// inputs, x passes through a dropout first. The stack is not a module itself; the module that owns it
/// registers its parts():
///
///     input_dropout          before the first convolution, for types that drop inputs
///     convs or layers        the convolutions, "0", "1", ...
///     bns, norms             batch norms, layer norms
///     dropouts
class LayerStack : NonCopyable {
 public:
  /// `description` is a checked one of a stack. With `cached`, the first layer caches the aggregate of its
  /// input if the type has this option, no dropout precedes it and the aggregate is not wider than its
  /// output. Throws InputError as the convolution does. Local.
  LayerStack(const ModelDescription& description, const Communicator& comm, Generator& gen,
             bool cached = false);

  /// Returns names and modules to register. The modules live as long as this object.
  [[nodiscard]] std::vector<std::pair<std::string, Module*>> parts();

  /// x [local sources of the first graph, in] -> [local destinations of the last graph, out]. `relations`: of
  /// the graph, or of each message flow graph; for types with relations only. Collective.
  Variable operator()(const LayerGraphs& graphs, const Variable& x,
                      std::span<const GraphRelations> relations = {});
  /// Returns the output of layer `layer`, counted from 1, which is the input of the next convolution.
  /// Collective.
  Variable after_layer(Index layer, const LayerGraphs& graphs, const Variable& x,
                       std::span<const GraphRelations> relations = {});

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
  std::vector<decltype(StackConvolution::apply)> calls_;  // of each convolution
  ModuleList<DistributedBN1D> batch_norms_;
  ModuleList<LayerNorm> layer_norms_;
  ModuleList<Dropout> dropouts_;
};

}}  // namespace sar
