/// The network of `train`: a stack of convolutions of one type.
#pragma once

#include <sar/nn/models/layer_stack.hpp>

#include <map>
#include <span>
#include <string>

namespace sar::tools {

/// Returns the description with the widths of the data.
ModelDescription with_widths(ModelDescription description, Index in_feats, Index out_feats);

/// A LayerStack as a module.
class NodeClassifier : public Module {
 public:
  /// Local. Throws InputError as ModelDescription::checked() does. `cached`: see LayerStack.
  NodeClassifier(const ModelDescription& description, const Communicator& comm, Generator& gen,
                 bool cached = false);

  /// Registers the parameters of the input, which must outlive this, as `input.*`.
  void add_input(Module& input);

  // See LayerStack. Collective.
  [[nodiscard]] Variable operator()(const LayerGraphs& graphs, const Variable& x,
                                    std::span<const GraphRelations> relations = {}) {
    return stack_(graphs, x, relations);
  }
  [[nodiscard]] Variable after_layer(Index layer, const LayerGraphs& graphs, const Variable& x,
                                     std::span<const GraphRelations> relations = {}) {
    return stack_.after_layer(layer, graphs, x, relations);
  }

  /// Returns the checked description.
  [[nodiscard]] const ModelDescription& description() const noexcept { return description_; }
  /// Returns the description for the metadata of a weight file, from which load_model() makes the network
  /// again; empty for a network that descriptions do not cover: with relations, or with its own input.
  [[nodiscard]] std::map<std::string, std::string> metadata() const;

 private:
  ModelDescription description_;
  bool is_described_;
  LayerStack stack_;
};

}  // namespace sar::tools
