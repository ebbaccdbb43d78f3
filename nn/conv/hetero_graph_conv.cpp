// SPDX-License-Identifier: MIT

// Relations are taken by their source type: those whose layers read their source rows once go into one
// Graph::call(), the others are called at once. Each result goes into the reducer of its destination
// type, so sum, mean, max and min hold one tensor per type. A layer may be called again in the backward
// pass: Repeatable gives it the counters of its first call and restores its counters and statistics
// afterwards.
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/hetero_graph_conv.hpp>
#include <sar/nn/modules/relation_key.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

/// A relation of a graph with its layer.
struct HeteroGraphConv::Part {
  const EdgeType* type;
  const Layer* layer;
  Variable edges;        ///< argument of the layer; may be undefined
  std::size_t position;  ///< among the relations into the same node type
};

namespace {

using Rows = HeteroGraphConv::Rows;

/// Combines the results of several relations for each node type.
using Reducers = std::map<std::string, CrossReducer>;

Reducers reducers_of(RelationAggregate aggregate, const std::map<std::string, std::size_t>& counts) {
  Reducers reducers;
  for (const auto& [type, count] : counts) reducers.emplace(type, CrossReducer(aggregate, count));
  return reducers;
}

Rows results_of(Reducers& reducers) {
  Rows rows;
  for (auto& [type, reducer] : reducers) rows.emplace(type, reducer.result());
  return rows;
}

/// Restores the counters and running statistics of a module in its destructor.
class Restored : NonCopyable {
 public:
  explicit Restored(const Module& module)
      : counters_(module.named_counters()), buffers_(module.named_buffers()) {
    for (const NamedCounter& counter : counters_) values_.push_back(*counter.value);
    for (const NamedBuffer& buffer : buffers_) statistics_.push_back(buffer.tensor.clone());
  }
  ~Restored() {
    for (std::size_t k = 0; k < counters_.size(); ++k) *counters_[k].value = values_[k];
    for (std::size_t k = 0; k < buffers_.size(); ++k) buffers_[k].tensor.copy_from(statistics_[k]);
  }

 private:
  std::vector<NamedCounter> counters_;
  std::vector<NamedBuffer> buffers_;
  std::vector<std::uint64_t> values_;
  std::vector<Tensor> statistics_;
};

/// A call of a layer that may be repeated in the backward pass. The repetition draws the same random numbers
/// and leaves the layer's counters and running statistics unchanged.
class Repeatable {
 public:
  explicit Repeatable(Module& module) : module_(&module) {}

  template <class Call>
  Variable operator()(const Call& call) {
    if (!called_) {
      for (const NamedCounter& counter : module_->named_counters()) first_.push_back(*counter.value);
      called_ = true;
      return call();
    }
    const Restored restored(*module_);
    std::size_t k = 0;
    for (const NamedCounter& counter : module_->named_counters()) *counter.value = first_[k++];
    return call();
  }

 private:
  Module* module_;
  bool called_ = false;
  std::vector<std::uint64_t> first_;
};

}  // namespace

HeteroGraphConv::HeteroGraphConv(RelationAggregate aggregate) : aggregate_(aggregate) {
  register_module("mods", mods_);
}

void HeteroGraphConv::add(Layer layer) {
  const auto& [source, name, destination] = layer.relation;
  mods_.register_module(relation_key(name), *layer.module);
  numbers_.emplace(EdgeType{source, name, destination}, layers_.size());
  layers_.push_back(std::move(layer));
}

void HeteroGraphConv::check_edges(const Layer& layer, const std::string& name, const Graph& graph,
                                  const Variable& edges) {
  require<InputError>(edges.defined() || !layer.needs_edges, "there are no rows of the edges of '", name,
                      "', which its layer reads");
  if (!edges.defined()) return;
  require<InputError>(layer.takes_edges, "there are rows of the edges of '", name,
                      "', expected none, because its layer reads none");
  require<ShapeError>(edges.num_rows() == graph.num_edges(), "rows of the edges of '", name, "' have shape ",
                      edges.shape(), ", rank ", graph.comm().rank(), " has ", graph.num_edges(),
                      " edges of this type");
}

std::vector<HeteroGraphConv::Part> HeteroGraphConv::parts(const Graph& graph, const Rows& feats,
                                                          const EdgeArguments& edges) const {
  std::vector<Part> found;
  std::map<std::size_t, Variable> edges_of;
  for (const auto& [name, rows] : edges)
    require<InputError>(edges_of.emplace(find_edge_type(graph.edge_types(), name), rows).second,
                        "there are rows of the edges of '", name, "' twice, by two names");
  std::map<std::string, std::size_t> arrived;
  for (const EdgeType& type : graph.edge_types()) {
    const std::string name = type.canonical_name();
    const auto number_of = [&](const std::string& relation) {
      const auto known = numbers_.find({type.source, relation, type.destination});
      return known == numbers_.end() ? layers_.size() : known->second;
    };
    const std::size_t number = std::min(number_of(type.relation), number_of(name));
    require<InputError>(number < layers_.size(), "there is no layer for the edge type '", name, "'");
    const Layer* layer = &layers_[number];
    for (const std::string& end : {type.source, type.destination}) {
      const auto rows = feats.find(end);
      require<InputError>(rows != feats.end() && rows->second.defined(), "there are no rows of '", end,
                          "' for the edge type '", name, "'");
      require<ShapeError>(rows->second.num_rows() == graph.num_nodes(end), "rows of '", end, "' have shape ",
                          rows->second.shape(), ", rank ", graph.comm().rank(), " has ", graph.num_nodes(end),
                          " nodes of this type");
    }
    const auto argument = edges_of.find(static_cast<std::size_t>(&type - graph.edge_types().data()));
    const Variable of_edges = argument == edges_of.end() ? Variable() : argument->second;
    check_edges(*layer, name, graph[type], of_edges);
    found.push_back({&type, layer, of_edges, arrived[type.destination]++});
  }
  return found;
}

HeteroGraphConv::Rows HeteroGraphConv::operator()(const Graph& graph, const Rows& feats,
                                                  const EdgeArguments& edges) const {
  return graph.comm().agree([&] {
    const std::vector<Part> all = parts(graph, feats, edges);
    std::map<std::string, std::size_t> counts;
    for (const Part& part : all) ++counts[part.type->destination];
    Reducers reducers = reducers_of(aggregate_, counts);
    for (const std::string& source : graph.node_types()) {
      std::vector<const Part*> sharing;
      std::vector<Graph::RelationCall> calls;
      for (const Part& part : all) {
        if (part.type->source != source) continue;
        const auto& [type, layer, of_edges, position] = part;
        Variable dst = feats.at(type->destination);
        const Index num_dst = graph.num_dst_nodes(type->destination);
        if (num_dst < dst.num_rows()) dst = slice_rows(dst, 0, num_dst);
        if (!layer->shares_rows) {
          reducers.at(type->destination)
              .take(position, layer->call(graph[*type], feats.at(source), dst, of_edges));
          continue;
        }
        const auto once = std::make_shared<Repeatable>(*layer->module);
        const auto compute = [once, call = layer->call, dst, edges_of_type = part.edges](
                                 const Graph& relation, const Variable& rows) {
          return (*once)([&] { return call(relation, rows, dst, edges_of_type); });
        };
        sharing.push_back(&part);
        calls.push_back({*type, compute});
      }
      if (calls.empty()) continue;
      graph.call(feats.at(source), calls, [&](std::size_t k, Variable y) {
        reducers.at(sharing[k]->type->destination).take(sharing[k]->position, std::move(y));
      });
    }
    return results_of(reducers);
  });
}

HeteroGraphConv::Rows HeteroGraphConv::operator()(const Graphs& graphs, const Rows& feats,
                                                  const EdgeArguments& edges) const {
  if (graphs.empty()) return {};
  const auto edges_of = [&](const std::string& name) {
    const auto found = edges.find(name);
    return found == edges.end() ? Variable() : found->second;
  };
  return graphs.begin()->second.comm().agree([&] {
    for (const auto& graph : graphs) {
      const std::string& name = graph.first;
      const auto layer = std::find_if(layers_.begin(), layers_.end(),
                                      [&](const Layer& each) { return each.relation.name == name; });
      require<InputError>(layer != layers_.end(), "there is no layer for the relation '", name, "'");
      for (const std::string& type : {layer->relation.source, layer->relation.destination})
        require<InputError>(feats.contains(type), "there are no rows of '", type, "' for the relation '",
                            name, "'");
      check_edges(*layer, name, graph.second, edges_of(name));
    }
    for (const auto& of_relation : edges)
      require<InputError>(graphs.contains(of_relation.first), "there are rows of the edges of '",
                          of_relation.first, "', which is no relation of the graphs");
    std::map<std::string, std::size_t> counts, arrived;
    for (const Layer& layer : layers_)
      if (graphs.contains(layer.relation.name)) ++counts[layer.relation.destination];
    Reducers reducers = reducers_of(aggregate_, counts);
    for (const Layer& layer : layers_) {
      const auto& [source, name, destination] = layer.relation;
      const auto graph = graphs.find(name);
      if (graph == graphs.end()) continue;
      reducers.at(destination)
          .take(arrived[destination]++,
                layer.call(graph->second, feats.at(source), feats.at(destination), edges_of(name)));
    }
    return results_of(reducers);
  });
}
}}  // namespace sar
