/// The models of `train`: a stack of convolutions of one type.
#pragma once

#include "relations.hpp"

#include <sar/graph/build/message_flow_graph.hpp>
#include <sar/graph/hetero/edge_type.hpp>
#include <sar/nn/batch_norm.hpp>
#include <sar/nn/dropout.hpp>
#include <sar/nn/module.hpp>
#include <sar/nn/module_list.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

struct ModelOptions {
  std::string type = "sage";  ///< one of model_types()
  int layers = 3;
  Index hidden = 256;         ///< width between layers: heads * features of a head
  Index hidden_per_head = 0;  ///< on the command line, instead of `hidden`
  Index heads = 4;            ///< of gat and gatv2, but for the last layer
  Index out_heads = 1;        ///< of the last layer of gat and gatv2, whose mean are the logits
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

/// The shape of a layer.
struct LayerSize {
  Index in = 0;
  Index head = 0;  ///< features of a head
  Index heads = 1;
  bool mean = false;  ///< of the heads; otherwise they lie side by side
  bool residual = false;
  bool cached = false;  ///< keeps the aggregate of its input

  [[nodiscard]] Index out() const { return mean ? head : heads * head; }
};

/// What the models of one type have in common.
struct ModelType {
  std::string name;
  std::string list;      ///< name of the list of convolutions, in the names of the weights
  bool attends = false;  ///< has heads; ELU follows a layer that batch norm does not follow, otherwise ReLU
  bool drops_inputs = false;    ///< dropout in front of every convolution, as in the papers of these
  bool has_relations = false;   ///< edges have types
  bool needs_types = false;     ///< those of nodes, too: --category
  bool by_relation = false;     ///< has a layer for each relation
  bool caches = false;          ///< the convolution has the option `cached`
  std::string bias;             ///< of a convolution: what it adds to all rows of its result
  std::string inner_bias = "";  ///< inside of a convolution in front of a batch norm
  Convolution (*make)(const LayerSize&, const ModelOptions&, const Communicator&, Generator&) = nullptr;
};

const std::vector<ModelType>& model_types();

/// The type of that name. Throws InputError when there is none.
const ModelType& model_type(const std::string& name);

/// Whether the first layer may keep the aggregate of the features: they reach it without dropout, and the
/// aggregate is no wider than the layer's result, which is kept for the backward pass in any case.
bool caches_features(const ModelOptions& options, Index in_feats, Index out_feats);

/// The layers of the model, from the first to the last. Throws InputError when `hidden` is no multiple of
/// `heads` in a model that has heads.
std::vector<LayerSize> layer_sizes(const ModelOptions& options, Index in_feats, Index num_classes);

/// For people: "gat: 1433 -> 64 (8 heads of 8) -> 7 (the mean of 8 heads)".
std::string describe(const ModelOptions& options, Index in_feats, Index num_classes);

/// sage: conv, [batch norm], ReLU, dropout, ..., conv. gcn: dropout in front of every conv, as Kipf and
/// Welling do. gat, gatv2: the same with ELU, or with batch norm and ReLU; heads lie side by side, and the
/// logits are the mean of the last layer's. gin, rgcn:
/// as sage; the network of a GIN layer is Linear, batch norm, ReLU, Linear, and its eps is learned.
class NodeClassifier : public Module {
 public:
  /// Throws InputError as layer_sizes().
  NodeClassifier(const ModelOptions& options, Index in_feats, Index num_classes, const Communicator& comm,
                 Generator& gen);

  /// Registers the parameters of what makes x, which outlives this, as `input.*`.
  void add_input(Module& input) { register_module("input", input); }

  /// On a graph, or on message flow graphs: x [local sources of the first layer, features] -> logits [local
  /// destinations of the last, classes]. The weights of a graph's edges are used where it has any, but not by
  /// gatv2 and rgcn. `relations`, of rgcn only: those of the graph, or of each message flow graph.
  /// Collective.
  Variable operator()(const LayerGraphs& graphs, const Variable& x,
                      std::span<const Relations> relations = {});
  /// The same up to layer 1, ..., layers: what the next convolution takes. Collective.
  Variable after_layer(int layer, const LayerGraphs& graphs, const Variable& x,
                       std::span<const Relations> relations = {});

  /// Forgets the gradients of biases in front of a batch norm, which subtracts them again. They are zero but
  /// for rounding, which Adam would scale up to full steps. After the backward pass, in front of
  /// gather_grads.
  void forget_noise();

 private:
  /// As ModuleList, of convolutions of any type.
  class ConvolutionList : public Module {
   public:
    void push_back(Convolution convolution);
    const Convolution& operator[](std::size_t i) const { return convolutions_[i]; }
    [[nodiscard]] std::size_t size() const { return convolutions_.size(); }

   private:
    std::vector<Convolution> convolutions_;
  };

  ModelOptions options_;
  const ModelType& type_;
  Dropout input_dropout_;
  ConvolutionList convolutions_;
  ModuleList<DistributedBN1D> norms_;
  ModuleList<Dropout> dropouts_;
  std::vector<Variable> normalized_biases_;  // in front of a batch norm
};

}  // namespace sar::tools
