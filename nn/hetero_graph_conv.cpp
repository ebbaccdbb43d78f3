#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/hetero_graph_conv.hpp>

#include <algorithm>

namespace sar {

HeteroGraphConv::HeteroGraphConv(RelationAggregate aggregate) : aggregate_(aggregate) {
  register_module("mods", mods_);
}

void HeteroGraphConv::add(Relation relation, Module& conv, Call call) {
  mods_.register_module(relation.name, conv);
  layers_.push_back({std::move(relation), std::move(call)});
}

HeteroGraphConv::Rows HeteroGraphConv::operator()(const Graphs& graphs, const Rows& feats) const {
  const auto rows = [&](const std::string& kind, const std::string& relation) {
    const auto found = feats.find(kind);
    require<InputError>(found != feats.end(), "there are no rows of '", kind, "' for the relation '",
                        relation, "'");
    return found->second;
  };
  for (const auto& [name, graph] : graphs)
    require<InputError>(
        std::any_of(layers_.begin(), layers_.end(),
                    [&, &called = name](const Layer& layer) { return layer.relation.name == called; }),
        "there is no layer for the relation '", name, "'");

  Rows sums;
  std::map<std::string, int> counts;
  for (const Layer& layer : layers_) {
    const auto& [source, name, destination] = layer.relation;
    const auto graph = graphs.find(name);
    if (graph == graphs.end()) continue;
    Variable y = layer.call(graph->second, rows(source, name), rows(destination, name));
    Variable& sum = sums[destination];
    sum = sum.defined() ? sar::add(std::exchange(sum, {}), std::move(y)) : std::move(y);
    ++counts[destination];
  }
  if (aggregate_ == RelationAggregate::mean)
    for (auto& [kind, sum] : sums) sum = std::exchange(sum, {}) * (real{1} / static_cast<real>(counts[kind]));
  return sums;
}

}  // namespace sar
