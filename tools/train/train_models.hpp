/// The models of `train`: a stack of convolutions of one type.
#pragma once

#include "relations.hpp"

#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/hetero/edge_type.hpp>
#include <sar/nn/models/layer_stack.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/models/stack_convolution.hpp>
#include <sar/nn/modules/module.hpp>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

struct ModelOptions {
  std::string type = "sage";  ///< one of model_types()
  int layers = 3;
  Index hidden = 256;      ///< width between layers: heads * features of a head
  Index heads = 4;         ///< of gat and gatv2, but for the last layer
  Index out_heads = 1;     ///< of the last layer of gat and gatv2, whose mean are the logits
  int first_residual = 0;  ///< the first layer of gat and gatv2 with a residual connection, from 1; 0: none
  double dropout = 0.5;
  double attention_dropout = 0;
  Index num_rels = 4;                        ///< types of edges
  std::vector<std::string> node_types = {};  ///< of a graph of many types; otherwise none
  std::vector<EdgeType> edge_types = {};
  Index num_bases = 0;  ///< of rgcn: matrices that the types share; 0: one for each type
  bool batch_norm = false;
  bool cached =
      false;  ///< the first layer keeps the aggregate of the features where caches_features() allows it
};

/// A convolution of any type.
struct Convolution {
  std::unique_ptr<Module> module;
  std::function<Variable(const GraphShardManager&, const Variable&, const Relations&)> apply;
};

/// What the models of one type have in common. ELU follows a layer that has heads and that batch norm does
/// not follow, otherwise ReLU.
struct ModelType {
  StackType stack;
  bool has_relations = false;  ///< edges have types
  bool needs_types = false;    ///< those of nodes, too: --category
  bool by_relation = false;    ///< has a layer for each relation
  /// Of models that have relations; those of others are the ones that a description names.
  Convolution (*make)(const LayerSize&, const ModelOptions&, Generator&) = nullptr;
};

const std::vector<ModelType>& model_types();

/// The type of that name. Throws InputError when there is none.
const ModelType& model_type(const std::string& name);

/// Whether the first layer may keep the aggregate of the features: they reach it without dropout, and the
/// aggregate is no wider than the layer's result, which is kept for the backward pass in any case.
bool caches_features(const ModelOptions& options, Index in_feats, Index out_feats);

/// What the options say of a stack of layers, of whatever type.
ModelDescription description_of(const ModelOptions& options, Index in_feats, Index num_classes);

/// The layers of the model, from the first to the last. Throws InputError when `hidden` is no multiple of
/// `heads` in a model that has heads.
std::vector<LayerSize> layers_of(const ModelOptions& options, Index in_feats, Index num_classes);

/// For people: "gat: 1433 -> 64 (8 heads of 8) -> 7 (the mean of 8 heads)".
std::string describe(const ModelOptions& options, Index in_feats, Index num_classes);

/// sage: conv, [batch norm], ReLU, dropout, ..., conv. gcn: dropout in front of every conv, as Kipf and
/// Welling do. gat, gatv2: the same with ELU, or with batch norm and ReLU; heads lie side by side, and the
/// logits are the mean of the last layer's. gin, rgcn:
/// as sage; the network of a GIN layer is Linear, batch norm, ReLU, Linear, and its eps is learned.
class NodeClassifier : public Module {
 public:
  /// Throws InputError as layers_of().
  NodeClassifier(const ModelOptions& options, Index in_feats, Index num_classes, const Communicator& comm,
                 Generator& gen);

  /// Registers the parameters of what makes x, which outlives this, as `input.*`.
  void add_input(Module& input);

  /// On a graph, or on message flow graphs: x [local sources of the first layer, features] -> logits [local
  /// destinations of the last, classes]. The weights of a graph's edges are used where it has any, but not by
  /// gatv2 and rgcn. `relations`, of rgcn only: those of the graph, or of each message flow graph.
  /// Collective.
  Variable operator()(const LayerGraphs& graphs, const Variable& x,
                      std::span<const Relations> relations = {});
  /// The same up to layer 1, ..., layers: what the next convolution takes. Collective.
  Variable after_layer(int layer, const LayerGraphs& graphs, const Variable& x,
                       std::span<const Relations> relations = {});

  /// For the metadata of a file of the weights: the description, from which load_model() makes the network
  /// again. Empty for a network that a description does not say: with relations or an input of its own.
  [[nodiscard]] std::map<std::string, std::string> metadata() const;

 private:
  NodeClassifier(const ModelOptions& options, const ModelType& type, const ModelDescription& description,
                 const Communicator& comm, Generator& gen);
  /// Keeps how it is applied.
  std::unique_ptr<Module> make(const LayerSize& size, const ModelOptions& options, const ModelType& type,
                               const Communicator& comm, Generator& gen);

  ModelDescription description_;
  bool is_described_;
  std::vector<Convolution> convolutions_;  // their modules are in the stack
  LayerStack stack_;
};

}  // namespace sar::tools
