// SPDX-License-Identifier: MIT

/// A stack of convolutions of any class, with residual connections, normalization, activation and dropout
/// between them, and linear layers before and after them.
#pragma once

#include <sar/core/threads/parallel.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/sampling/graph_samples.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/models/relations.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/norms.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Xu et al., arXiv 1806.03536. Of the outputs h_1, ..., h_L [n, hidden] of L layers, it computes
///
///     last:  y = W h_L + b
///
///     sum:   y = W (h_1 + ... + h_L) + b
///
///     max:   y = W max(h_1, ..., h_L) + b      (of each element)
///
///     cat:   y = W [h_1, ..., h_L] + b
///
/// as torch_geometric's BasicGNN with `jk` does; sum, which that does not have, is that of arXiv 2406.08993.
/// The outputs arrive one after another. sum and cat add up the products of each layer, so that neither the
/// sum nor the concatenation is ever in memory.
///
/// Parameters: weight W [out, hidden], cat: [out, L hidden]; bias b [out]. Initialized as Linear.
class JumpingKnowledge : public Linear {
 public:
  /// `mode` is one of the four names. Throws InputError unless the widths are positive.
  JumpingKnowledge(const std::string& mode, Index layers, Index hidden, Index out_feats, Generator& gen);

  /// Local. Adds the output h [n, hidden] of the next layer, counted from 0, to `so_far`, which is
  /// undefined before the first one, and returns both together.
  [[nodiscard]] Variable add_layer(Variable so_far, Index layer, const Variable& h) const;

  /// Local. Returns whether the result depends on the output of this layer, counted from 0.
  [[nodiscard]] bool reads(Index layer) const noexcept { return mode_ != Mode::last || layer + 1 == layers_; }

  /// Local. Returns y [n, out] of the outputs of all layers.
  [[nodiscard]] Variable result(Variable so_far) const;

 private:
  enum class Mode { last, sum, max, cat };

  Mode mode_;
  Index layers_, hidden_;
};

/// Computes L layers with the activation f, from the input x:
///
///     h_0 = dropout(x)                                          with input_dropout
///
///     h_0 = dropout(lin_in(h_0))                                with pre_linear
///
///     h_l = dropout(f(norm(conv_l(h_{l-1}) + r_l(h_{l-1}))))    l = 1 .. L, without jk to L - 1
///
///     y   = conv_L(h_{L-1}) + r_L(h_{L-1})                      without jk
///
///     y   = lin(last, sum, maximum or concatenation of h_1 .. h_L)    with jk; see JumpingKnowledge
///
///     y   = mlp(lin(last, sum, maximum or concatenation of R(h_1) .. R(h_L)))    with readout
///
/// R reduces the rows of the nodes of each sample of a SampleBatch (readout_nodes), so that y has a row for
/// each sample; with jk cat and the readout sum this is the network of Xu et al., arXiv 1810.00826, without
/// h_0. mlp are head_layers - 1 times f, dropout and a linear layer.
///
/// r_l is 0, the identity, or a linear layer lins_l with a bias; a convolution with a residual connection of
/// its own computes that instead if `residual` is a number. On message flow graphs, r_l and jk read the rows
/// of the destinations. norm is batch norm over the rows of all ranks, layer norm, or none. Without jk, the
/// last layer has neither norm nor activation nor dropout. Heads are side by side in h_l, and averaged in y.
///
/// A bias that a batch norm cancels is frozen: that of the convolution and that of lins_l. Its gradient is
/// zero up to rounding, which Adam would scale to full steps. Its modules are
///
///     input_dropout          before everything else
///     lin_in, lin_in_dropout with pre_linear
///     convs or layers        the convolutions, "0", "1", ...
///     lins                   the linear layers r_l, with the number of their convolution
///     bns, norms             batch norms, layer norms
///     dropouts
///     lin                    with jk
///     mlp, mlp_dropouts      with head_layers above 1
///
/// @code
/// LayerStack stack({.type = "gat", .in_feats = 64, .hidden = 16, .out_feats = 4}, comm, gen);
/// const Variable y = stack(graph, features);
/// @endcode
class LayerStack : public Module {
 public:
  /// Local. With `cached`, the first convolution caches the aggregate of its input if the type has this
  /// option, neither a dropout nor a linear layer precedes it and the aggregate is not wider than its output.
  /// Throws InputError as ModelDescription::checked(), whose message begins with "the model", and as the
  /// convolution does.
  LayerStack(const ModelDescription& description, const Communicator& comm, Generator& gen,
             bool cached = false);

  /// Returns the checked description.
  [[nodiscard]] const ModelDescription& description() const noexcept { return description_; }
  /// Returns the modules with their names, for a module that has them in the place of this one.
  [[nodiscard]] std::vector<std::pair<std::string, Module*>> parts();
  /// Registers the parameters of the network's input, which must outlive this, as `input.*`.
  void add_input(Module& input) { register_module("input", input); }

  /// Collective. x [local sources of the first graph, in] -> [local destinations of the last graph, out].
  /// `relations`: of the graph, or of each message flow graph; for types with relations or edge features.
  Variable operator()(const LayerGraphs& graphs, const Variable& x,
                      std::span<const GraphRelations> relations = {});
  /// Collective. With a readout: x [local nodes, in] -> [samples of this rank, out]. Without one, and for the
  /// call above with one, throws InputError.
  Variable operator()(const SampleBatch& batch, const Variable& x,
                      std::span<const GraphRelations> relations = {});
  /// Collective. Returns the output of layer `layer`, counted from 1: h_l, or y for the last one without
  /// jk.
  Variable after_layer(Index layer, const LayerGraphs& graphs, const Variable& x,
                       std::span<const GraphRelations> relations = {});

 private:
  /// Like ModuleList, but for modules of any class, named by the layers that they belong to.
  class LayerModules : public Module {
   public:
    Module& put(std::size_t layer, std::unique_ptr<Module> module);
    [[nodiscard]] bool empty() const { return modules_.empty(); }

   private:
    std::vector<std::unique_ptr<Module>> modules_;
  };
  struct Layer {
    decltype(StackConvolution::apply) convolution;
    bool is_identity = false;        ///< r_l
    const Linear* linear = nullptr;  ///< r_l
  };

  void add_layer(const LayerSize& size, const Communicator& comm, Generator& gen);
  /// Collective. Returns the output of the last layer or, with jk, of `lin`, to whose input `reduce` is
  /// applied.
  [[nodiscard]] Variable run(const LayerGraphs& graphs, const Variable& x,
                             std::span<const GraphRelations> relations,
                             FunctionRef<Variable(const Variable&)> reduce);
  /// Returns h_0.
  [[nodiscard]] Variable input(const Graph& graph, const Variable& x);
  /// Collective. Returns the output of layer `l`, counted from 0, for the output h of the one before it.
  [[nodiscard]] Variable output(std::size_t l, const LayerGraphs& graphs, Variable h,
                                std::span<const GraphRelations> relations);
  /// Applies norm, activation and dropout to the sum of a convolution and its residual connection.
  [[nodiscard]] Variable activate(std::size_t l, const Graph& graph, Variable y);

  ModelDescription description_;
  bool is_relu_;
  Activation activation_;
  Dropout input_dropout_;
  std::optional<Linear> lin_in_;
  std::optional<Dropout> lin_in_dropout_;
  LayerModules convolutions_, linears_;
  std::vector<Layer> layers_;
  ModuleList<DistributedBN1D> batch_norms_;
  ModuleList<LayerNorm> layer_norms_;
  ModuleList<Dropout> dropouts_;
  std::optional<JumpingKnowledge> head_;
  ModuleList<Linear> mlp_;
  ModuleList<Dropout> mlp_dropouts_;
};

}}  // namespace sar
