// SPDX-License-Identifier: MIT
#include "train_gcn_norm.hpp"

#include "formats/shared_texts.hpp"
#include "train_checkpoint.hpp"

#include <sar/core/files/safetensors.hpp>
#include <sar/models.hpp>

namespace sar::tools {
namespace {

/// Returns the --gcn-norm that a checkpoint was made with. Rank 0 reads the file. Collective.
std::string gcn_norm_of_checkpoint(const Communicator& comm, const std::string& path) {
  return formats::shared_text(comm, [&] {
    const SafetensorsFile file(path);
    const auto found = file.metadata().find("extra.--gcn-norm");
    return found != file.metadata().end() ? found->second : "";
  });
}

}  // namespace

void choose_gcn_norm(const Communicator& comm, TrainOptions& o) {
  if (o.model.type != "gcn" || !o.model.gcn_norm.empty() || o.init_weights.empty()) return;
  const std::string checkpoint = find_checkpoint(comm, o.init_weights);
  o.model.gcn_norm = checkpoint.empty() ? gcn_norm_of_weights(comm, o.init_weights, o.weight_names)
                                        : gcn_norm_of_checkpoint(comm, checkpoint);
}

void keep_gcn_norm(const Graph& graph, const ModelDescription& model, bool of_one) {
  if (model.type != "gcn" || (!graph.edge_weight().defined() && !of_one)) return;
  const GraphConvNorm norm = graph_conv_norm(model.gcn_norm);
  if (norm == GraphConvNorm::weights) (void)kept_edge_weight_norm(graph, EdgeNorm::both);
  if (norm == GraphConvNorm::in_weights) (void)kept_edge_weight_norm(graph, EdgeNorm::in_weights);
}

std::vector<std::string> graph_notes(const Graph& graph, const WeightFile& weights,
                                     const ModelDescription& given, const ModelDescription& chosen) {
  std::vector<std::string> notes;
  const bool is_weighted = graph.edge_weight().defined();
  if (chosen.type == "gcn" && given.gcn_norm.empty() && !chosen.gcn_norm.empty())
    notes.push_back(
        concat("messages are normalized as in the network of these weights: --gcn-norm ", chosen.gcn_norm));
  if (chosen.type == "gcn" && chosen.gcn_norm.empty() && is_weighted)
    notes.push_back(
        "messages are normalized by numbers of edges, as in DGL; weights of PyG 1 have the same names and "
        "need "
        "--gcn-norm in_weights");
  if (!weights.adds_self_loops()) return notes;
  const SelfLoopCounts loops = count_self_loops(graph);
  const auto note = [&](Index nodes, const char* have, const char* layers) {
    if (nodes > 0)
      notes.push_back(concat(nodes, " of ", graph.num_global_nodes(), " nodes have ", have,
                             ", and the layers of these weights ", layers,
                             " one: --add-self-loops remaining"));
  };
  note(loops.none, "no self loop", "add");
  note(loops.several, "several self loops", "keep");
  return notes;
}

}  // namespace sar::tools
