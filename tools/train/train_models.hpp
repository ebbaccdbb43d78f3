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
  Index hidden = 256;      ///< width between layers: heads * width of a head
  Index heads = 4;         ///< gat and gatv2, all layers except the last
  Index out_heads = 1;     ///< heads of the last layer of gat and gatv2; the logits are their mean
  int first_residual =
      0;  ///< first layer of gat and gatv2 with a residual connection, counted from 1; 0: none
  std::string gcn_norm = {};  ///< gcn: as ModelDescription::gcn_norm; empty: by the names of the weights
  double dropout = 0.5;
  double attention_dropout = 0;
  Index num_rels = 4;                        ///< number of edge types
  std::vector<std::string> node_types = {};  ///< typed graphs; otherwise empty
  std::vector<EdgeType> edge_types = {};
  Index num_bases = 0;  ///< rgcn: number of shared basis matrices; 0: one matrix per type
  bool batch_norm = false;
  bool cached =
      false;  ///< the first layer caches the aggregate of the features if caches_features()
};

/// A convolution of any type.
struct Convolution {
  std::unique_ptr<Module> module;
  std::function<Variable(const GraphShardManager&, const Variable&, const Relations&)> apply;
};

/// Properties of a model type. The activation is ELU after a layer with heads and without batch norm,
/// otherwise ReLU.
struct ModelType {
  StackType stack;
  bool has_relations = false;  ///< edges have types
  bool needs_types = false;    ///< needs node types: --category
  bool by_relation = false;    ///< one layer per relation
  /// Makes a layer of a model with relations; null for the models that a description can name.
  Convolution (*make)(const LayerSize&, const ModelOptions&, Generator&) = nullptr;
};

const std::vector<ModelType>& model_types();

/// Returns the type with this name. Throws InputError if there is none.
const ModelType& model_type(const std::string& name);

/// Returns whether the first layer may cache the aggregate of the features: no dropout precedes it, and the
/// aggregate is not wider than the layer's output, which the backward pass needs in any case.
bool caches_features(const ModelOptions& options, Index in_feats, Index out_feats);

/// Returns the widths, heads and norms of a stack of layers from the options.
ModelDescription description_of(const ModelOptions& options, Index in_feats, Index num_classes);

/// Returns the layers of the model in order. Throws InputError if a model has heads and `hidden` is not a
/// multiple of `heads`.
std::vector<LayerSize> layers_of(const ModelOptions& options, Index in_feats, Index num_classes);

/// Returns a summary such as "gat: 1433 -> 64 (8 heads of 8) -> 7 (the mean of 8 heads)".
std::string describe(const ModelOptions& options, Index in_feats, Index num_classes);

/// A stack of convolutions.
/// - sage: conv, [batch norm], ReLU, dropout, ..., conv.
/// - gcn: dropout before every conv (Kipf and Welling, 2017).
/// - gat, gatv2: as gcn, with ELU, or with batch norm and ReLU; heads are concatenated, and the logits are
/// the mean over
///   the heads of the last layer.
/// - gin, rgcn: as sage; the network of a GIN layer is Linear, batch norm, ReLU, Linear, and its eps is
/// learned.
class NodeClassifier : public Module {
 public:
  /// Throws InputError as layers_of() does.
  NodeClassifier(const ModelOptions& options, Index in_feats, Index num_classes, const Communicator& comm,
                 Generator& gen);

  /// Registers the parameters of the input, which must outlive this, as `input.*`.
  void add_input(Module& input);

  /// Maps x [local sources of the first layer, features] to logits [local destinations of the last layer,
  /// classes], on a graph or on message flow graphs. Edge weights of the graph are used, except by gatv2 and
  /// rgcn. `relations`: of the graph, or of each message flow graph; rgcn only. Collective.
  Variable operator()(const LayerGraphs& graphs, const Variable& x,
                      std::span<const Relations> relations = {});
  /// Returns the output of layer `layer` (from 1), which is the input of the next convolution. Collective.
  Variable after_layer(int layer, const LayerGraphs& graphs, const Variable& x,
                       std::span<const Relations> relations = {});

  /// Returns the description for the metadata of a weight file, from which load_model() makes the network
  /// again; empty for a network that descriptions do not cover: with relations, or with its own input.
  [[nodiscard]] std::map<std::string, std::string> metadata() const;

 private:
  NodeClassifier(const ModelOptions& options, const ModelType& type, const ModelDescription& description,
                 const Communicator& comm, Generator& gen);
  /// Makes a layer and stores how it is applied.
  std::unique_ptr<Module> make(const LayerSize& size, const ModelOptions& options, const ModelType& type,
                               const Communicator& comm, Generator& gen);

  ModelDescription description_;
  bool is_described_;
  std::vector<Convolution> convolutions_;  // their modules are in the stack
  LayerStack stack_;
};

}  // namespace sar::tools
