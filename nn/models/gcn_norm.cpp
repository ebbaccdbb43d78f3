// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/nn/models/gcn_norm.hpp>
#include <sar/nn/models/model_description.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the norm that a description in the metadata names; empty if there is none.
std::string described_norm(const SafetensorsFile& file) {
  const auto found = file.metadata().find(model_key);
  if (found == file.metadata().end()) return {};
  return ModelDescription::from_json(found->second, concat(file.path(), ": ", model_key)).gcn_norm;
}

/// Returns whether a layer has the weight of PyG's GCNConv, but not the bias of a linear layer called `lin`.
bool has_weight_of_pyg(const SafetensorsFile& file, const WeightNames& names) {
  const auto has = [&](const std::string& name) {
    return std::ranges::find(file.entries(), name, &SafetensorsEntry::name) != file.entries().end();
  };
  const std::string weight = "lin.weight";
  return std::ranges::any_of(file.entries(), [&](const SafetensorsEntry& entry) {
    const std::string& name = entry.name;
    if (!name.ends_with(weight) || is_dropped(name, names)) return false;
    const std::string layer = name.substr(0, name.size() - weight.size());
    return (layer.empty() || layer.ends_with('.')) && !has(layer + "lin.bias");
  });
}

}  // namespace

GraphConvNorm graph_conv_norm(const std::string& gcn_norm) {
  if (gcn_norm.empty() || gcn_norm == "degrees") return GraphConvNorm::both;
  if (gcn_norm == "weights") return GraphConvNorm::weights;
  require<InputError>(gcn_norm == "in_weights", "gcn_norm is '", gcn_norm,
                      "', expected degrees, weights or in_weights");
  return GraphConvNorm::in_weights;
}

std::string gcn_norm_of_weights(const Communicator& comm, const std::string& path, const WeightNames& names) {
  return comm.agree([&] {
    std::string norm;
    if (comm.rank() == 0) {
      const SafetensorsFile file(path);
      norm = described_norm(file);
      if (norm.empty() && has_weight_of_pyg(file, names)) norm = "in_weights";
    }
    return comm.broadcast(norm, 0);
  });
}

SelfLoopCounts count_self_loops(const Graph& graph) {
  return graph.comm().agree([&] {
    const GraphShard& local = graph.topology().local;
    Array<Index> loops(static_cast<std::size_t>(graph.num_dst_nodes()), 0);
    for (Index i = 0; i < local.num_rows(); ++i)
      for (Index k = local.row_begin[i]; k < local.row_begin[i + 1]; ++k)
        if (local.src[k] == local.dst_row(i)) ++loops[local.dst_row(i)];
    const auto several = std::ranges::count_if(loops, [](Index n) { return n > 1; });
    return SelfLoopCounts{graph.comm().all_reduce(Index{std::ranges::count(loops, Index{0})}),
                          graph.comm().all_reduce(Index{several})};
  });
}
}}  // namespace sar
