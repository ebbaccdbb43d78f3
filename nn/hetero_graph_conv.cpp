#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/hetero_graph_conv.hpp>
#include <sar/nn/relation_key.hpp>

#include <algorithm>

namespace sar::inline SAR_PRECISION {

HeteroGraphConv::HeteroGraphConv(RelationAggregate aggregate) : aggregate_(aggregate) {
  register_module("mods", mods_);
}

void HeteroGraphConv::add(Relation relation, Module& conv, Call call) {
  mods_.register_module(relation_key(relation.name), conv);
  layers_.push_back({std::move(relation), std::move(call)});
}

void HeteroGraphConv::check(const Graphs& graphs, const Rows& feats) const {
  for (const auto& graph : graphs) {
    const std::string& name = graph.first;
    const auto layer = std::find_if(layers_.begin(), layers_.end(),
                                    [&](const Layer& each) { return each.relation.name == name; });
    require<InputError>(layer != layers_.end(), "there is no layer for the relation '", name, "'");
    for (const std::string& type : {layer->relation.source, layer->relation.destination})
      require<InputError>(feats.contains(type), "there are no rows of '", type, "' for the relation '", name,
                          "'");
  }
}

HeteroGraphConv::Rows HeteroGraphConv::operator()(const Graphs& graphs, const Rows& feats) const {
  if (graphs.empty()) return {};
  return graphs.begin()->second.comm().agree([&] {
    check(graphs, feats);
    Rows sums;
    std::map<std::string, int> counts;
    for (const Layer& layer : layers_) {
      const auto& [source, name, destination] = layer.relation;
      const auto graph = graphs.find(name);
      if (graph == graphs.end()) continue;
      Variable y = layer.call(graph->second, feats.at(source), feats.at(destination));
      Variable& sum = sums[destination];
      sum = sum.defined() ? sar::add(std::exchange(sum, {}), std::move(y)) : std::move(y);
      ++counts[destination];
    }
    if (aggregate_ == RelationAggregate::mean)
      for (auto& [type, sum] : sums)
        sum = std::exchange(sum, {}) * (real{1} / static_cast<real>(counts[type]));
    return sums;
  });
}

}  // namespace sar
