// SPDX-License-Identifier: MIT

/// What the library and its programs know of a type of network. model_types.cpp has a row for each type.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct ModelDescription;
struct GraphRelations;

/// The residual connection of a layer, which is added to the result of its convolution.
enum class LayerResidual {
  none,
  identity,  ///< the layer's input
  linear,    ///< a linear layer of the layer's input
  own        ///< that of the convolution: its input where the widths are equal, else a linear layer of it
};

/// The widths of a layer: rows of `in` values -> rows of out() values.
struct LayerSize {
  Index in = 0;
  Index head = 0;  ///< features per head
  Index heads = 1;
  bool mean = false;  ///< the result is the mean of the heads; otherwise they are side by side
  LayerResidual residual = LayerResidual::none;
  bool cached = false;  ///< caches the aggregate of its input

  [[nodiscard]] Index out() const noexcept { return mean ? head : heads * head; }
};

/// What a layer of a stack is made from.
struct LayerPlan {
  const ModelDescription& description;  ///< checked
  LayerSize size;
  const Communicator& comm;
  Generator& gen;
};

/// A convolution of any class.
struct StackConvolution {
  std::unique_ptr<Module> module;
  /// x [local sources, in] -> [local destinations, out], plus `residual` of the destinations' rows unless it
  /// is null. Edge weights are used if the graph has them, except by types that do not read them.
  std::function<Variable(const Graph&, const Variable& x, const GraphRelations&, const Linear* residual)>
      apply;
};

/// A type of network: what a description of it may say, and the convolution that it stacks.
struct ModelType {
  std::string name;  ///< `type` of a description, --model of `train`
  /// Keys of a description besides type, widths, layers and activation (of a potential: type, hidden and
  /// layers), and besides stack_keys() of a stack.
  std::vector<std::string> keys = {};
  std::vector<std::string> aggregators = {};  ///< values of the key aggregator, the default first

  /// Local. Makes a convolution; null for a network that is no stack. Throws InputError as the convolution
  /// does.
  StackConvolution (*make)(const LayerPlan&) = nullptr;
  std::string list = "layers";  ///< name of the list of convolutions in weight names
  bool drops_inputs = false;    ///< dropout of the input by default, as in the papers
  bool caches = false;          ///< the convolution has the option `cached`
  bool own_residual = false;    ///< the convolution has the option `residual`
  /// Parameter that a convolution, or the one of each relation, adds to all rows of its result; may be empty.
  std::string bias = {};
  std::string inner_bias = {};  ///< bias inside a convolution that an inner batch norm cancels; may be empty

  /// Sparse features are multiplied before they are aggregated, except with these aggregators. Other types
  /// make dense rows of them.
  bool multiplies_sparse = false;
  std::vector<std::string> dense_aggregators = {};

  std::string weightless = {};  ///< class of its layers, if they read no edge weights
  bool has_relations = false;  ///< edges have types
  bool needs_types = false;    ///< nodes have types, too
  bool by_relation = false;    ///< one convolution for each relation
  bool is_potential = false;   ///< of atoms: a Potential, whose inputs are species and positions

  /// Returns whether the first layer of a network with this aggregator reads sparse features as they are.
  [[nodiscard]] bool reads_sparse(const std::string& aggregator) const {
    return multiplies_sparse && std::ranges::find(dense_aggregators, aggregator) == dense_aggregators.end();
  }
  [[nodiscard]] bool is_stack() const noexcept { return make != nullptr; }
  [[nodiscard]] bool attends() const { return reads("heads"); }
  /// Returns the keys that every stack reads.
  [[nodiscard]] static const std::vector<std::string>& stack_keys() {
    static const std::vector<std::string> keys{"norm", "dropout",    "input_dropout", "residual",
                                               "jk",   "pre_linear", "readout",       "head_layers"};
    return keys;
  }
  /// Returns whether the key is one of the type's own, or one of stack_keys() of a stack.
  [[nodiscard]] bool reads(const std::string& key) const {
    return (is_stack() && std::ranges::find(stack_keys(), key) != stack_keys().end()) ||
           std::ranges::find(keys, key) != keys.end() || (key == "aggregator" && !aggregators.empty());
  }
};

}}  // namespace sar
