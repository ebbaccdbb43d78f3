/// The models of `train`: a stack of convolutions of one kind.
#pragma once

#include <sar/sar.hpp>

#include <string>
#include <utility>

namespace sar::examples {

struct ModelOptions {
  std::string kind = "sage";
  int layers = 3;
  Index hidden = 256;
  double dropout = 0.5;
  bool batch_norm = false;
};

/// sage: conv, [batch norm], ReLU, dropout, ..., conv. gcn: dropout in front of every conv, as Kipf and
/// Welling do.
class NodeClassifier : public Module {
 public:
  NodeClassifier(const ModelOptions& options, Index in_feats, Index num_classes, const Communicator& comm,
                 Generator& gen)
      : options_(options), input_dropout_(options.kind == "gcn" ? options.dropout : 0, gen) {
    register_module("input_dropout", input_dropout_);
    register_module("convs", sage_);
    register_module("layers", gcn_);
    register_module("bns", norms_);
    register_module("dropouts", dropouts_);
    for (int i = 0; i < options.layers; ++i) {
      const Index in = i == 0 ? in_feats : options.hidden;
      const Index out = i + 1 == options.layers ? num_classes : options.hidden;
      if (options.kind == "gcn")
        gcn_.emplace_back(in, out, gen);
      else
        sage_.emplace_back(in, out, gen);
      if (i + 1 == options.layers) break;
      if (options.batch_norm) norms_.emplace_back(out, comm);
      dropouts_.emplace_back(options.dropout, gen);
    }
  }

  /// On a graph, or on message flow graphs: x [local sources of the first layer, features] -> logits [local
  /// destinations of the last, classes]. A graph's edge weights are used where it has any.
  Variable operator()(const LayerGraphs& graphs, const Variable& x) {
    Variable h = input_dropout_.is_active() ? input_dropout_(x, graphs[0].src_ids()) : x;
    for (std::size_t i = 0;; ++i) {
      h = conv(i, graphs[i], h);
      if (i + 1 == static_cast<std::size_t>(options_.layers)) return h;
      const auto& ids = graphs[i].dst_ids();
      h = options_.batch_norm ? batch_norm_relu_dropout(std::move(h), norms_[i], dropouts_[i], ids)
                              : dropouts_[i](relu(std::move(h)), ids);
    }
  }

 private:
  Variable conv(std::size_t i, const GraphShardManager& graph, const Variable& h) {
    if (options_.kind == "gcn") return gcn_[i](graph, h, graph.edge_weight());
    return sage_[i](graph, h, graph.edge_weight());
  }

  ModelOptions options_;
  Dropout input_dropout_;
  ModuleList<SAGEConv> sage_;
  ModuleList<GraphConv> gcn_;
  ModuleList<DistributedBN1D> norms_;
  ModuleList<Dropout> dropouts_;
};

}  // namespace sar::examples
