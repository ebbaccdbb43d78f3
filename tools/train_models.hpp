/// The models of `train`: a stack of convolutions of one kind.
#pragma once

#include "relations.hpp"

#include <sar/sar.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace sar::examples {

struct ModelOptions {
  std::string kind = "sage";
  int layers = 3;
  Index hidden = 256;  ///< width between layers: heads * features of a head
  Index heads = 4;     ///< of gat and gatv2, but for the last layer, which has one
  double dropout = 0.5;
  double attention_dropout = 0;
  Index num_rels = 4;   ///< of rgcn: types of edges
  Index num_bases = 0;  ///< of rgcn: matrices that the types share; 0: one for each type
  bool batch_norm = false;

  [[nodiscard]] bool attends() const { return kind == "gat" || kind == "gatv2"; }
  /// Whether dropout goes in front of every convolution, as in the papers of these.
  [[nodiscard]] bool drops_inputs() const { return kind == "gcn" || attends(); }
};

/// sage: conv, [batch norm], ReLU, dropout, ..., conv. gcn: dropout in front of every conv, as Kipf and
/// Welling do. gat, gatv2: the same with ELU, or with batch norm and ReLU; heads lie side by side. gin, rgcn:
/// as sage; the network of a GIN layer is Linear, batch norm, ReLU, Linear, and its eps is learned.
class NodeClassifier : public Module {
 public:
  /// Throws InputError when `hidden` is no multiple of `heads`.
  NodeClassifier(const ModelOptions& options, Index in_feats, Index num_classes, const Communicator& comm,
                 Generator& gen)
      : options_(options), input_dropout_(options.drops_inputs() ? options.dropout : 0, gen) {
    register_module("input_dropout", input_dropout_);
    if (options.kind == "sage") register_module("convs", sage_);
    if (options.kind == "gcn") register_module("layers", gcn_);
    if (options.kind == "gat") register_module("layers", gat_);
    if (options.kind == "gatv2") register_module("layers", gatv2_);
    if (options.kind == "gin") register_module("layers", gin_);
    if (options.kind == "rgcn") register_module("layers", rgcn_);
    register_module("bns", norms_);
    register_module("dropouts", dropouts_);
    require<InputError>(!options.attends() || options.hidden % options.heads == 0, "--hidden ",
                        options.hidden, " is no multiple of --heads ", options.heads);
    for (int i = 0; i < options.layers; ++i) {
      const bool last = i + 1 == options.layers;
      add_conv(i == 0 ? in_feats : options.hidden, last ? num_classes : options.hidden, last, comm, gen);
      if (last) break;
      if (options.batch_norm) norms_.emplace_back(options.hidden, comm);
      dropouts_.emplace_back(options.dropout, gen);
    }
  }

  /// On a graph, or on message flow graphs: x [local sources of the first layer, features] -> logits [local
  /// destinations of the last, classes]. A graph's edge weights are used where it has any, but not by gatv2
  /// and rgcn. `relations`, of rgcn only: those of the graph, or of each message flow graph.
  Variable operator()(const LayerGraphs& graphs, const Variable& x,
                      std::span<const Relations> relations = {}) {
    return after_layer(options_.layers, graphs, x, relations);
  }
  /// The same up to layer 1, ..., layers: what the next convolution takes.
  Variable after_layer(int layer, const LayerGraphs& graphs, const Variable& x,
                       std::span<const Relations> relations = {}) {
    Variable h = input_dropout_.is_active() ? input_dropout_(x, graphs[0].src_ids()) : x;
    for (std::size_t i = 0;; ++i) {
      h = conv(i, graphs[i], h, relations);
      if (i + 1 == static_cast<std::size_t>(options_.layers)) return h;
      const auto& ids = graphs[i].dst_ids();
      if (options_.batch_norm)
        h = batch_norm_relu_dropout(std::move(h), norms_[i], dropouts_[i], ids);
      else
        h = dropouts_[i](options_.attends() ? elu(std::move(h)) : relu(std::move(h)), ids);
      if (i + 1 == static_cast<std::size_t>(layer)) return h;
    }
  }

 private:
  void add_conv(Index in, Index out, bool last, const Communicator& comm, Generator& gen) {
    const Index heads = last ? 1 : options_.heads;
    if (options_.kind == "gcn")
      gcn_.emplace_back(in, out, gen);
    else if (options_.kind == "gat")
      gat_.emplace_back(in, out / heads, heads, gen, GATConvOptions{.attn_drop = options_.attention_dropout});
    else if (options_.kind == "gatv2")
      gatv2_.emplace_back(in, out / heads, heads, gen,
                          GATv2ConvOptions{.attn_drop = options_.attention_dropout});
    else if (options_.kind == "gin")
      gin_.emplace_back(perceptron(in, out, comm, gen), GINConvOptions{.learn_eps = true});
    else if (options_.kind == "rgcn")
      rgcn_.emplace_back(
          in, out, options_.num_rels, gen,
          RelGraphConvOptions{.regularizer = options_.num_bases > 0 ? Regularizer::basis : Regularizer::none,
                              .num_bases = options_.num_bases});
    else
      sage_.emplace_back(in, out, gen);
  }

  /// The network of a GIN layer.
  std::shared_ptr<Sequential> perceptron(Index in, Index out, const Communicator& comm, Generator& gen) {
    auto mlp = std::make_shared<Sequential>();
    mlp->emplace_back<Linear>(in, options_.hidden, gen);
    mlp->emplace_back<DistributedBN1D>(options_.hidden, comm);
    mlp->push_back(relu);
    mlp->emplace_back<Linear>(options_.hidden, out, gen);
    return mlp;
  }

  Variable conv(std::size_t i, const GraphShardManager& graph, const Variable& h,
                std::span<const Relations> relations) {
    if (options_.kind == "gcn") return gcn_[i](graph, h, graph.edge_weight());
    if (options_.kind == "gat") return side_by_side(gat_[i](graph, h, graph.edge_weight()));
    if (options_.kind == "gatv2") return side_by_side(gatv2_[i](graph, h));
    if (options_.kind == "gin") return gin_[i](graph, h, graph.edge_weight());
    if (options_.kind == "rgcn") {
      const Relations& edges = relations[std::min(i, relations.size() - 1)];
      return rgcn_[i](graph, h, edges.types, edges.norm);
    }
    return sage_[i](graph, h, graph.edge_weight());
  }
  /// [n, heads, features] -> [n, heads * features]
  static Variable side_by_side(Variable y) {
    const Shape shape{y.num_rows(), y.shape().row_size()};
    return reshape(std::move(y), shape);
  }

  ModelOptions options_;
  Dropout input_dropout_;
  ModuleList<SAGEConv> sage_;
  ModuleList<GraphConv> gcn_;
  ModuleList<GATConv> gat_;
  ModuleList<GATv2Conv> gatv2_;
  ModuleList<GINConv> gin_;
  ModuleList<RelGraphConv> rgcn_;
  ModuleList<DistributedBN1D> norms_;
  ModuleList<Dropout> dropouts_;
};

}  // namespace sar::examples
