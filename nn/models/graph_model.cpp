// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/nn/models/gcn_norm.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/models/model_file.hpp>
#include <sar/nn/models/relations.hpp>
#include <sar/nn/models/weight_file.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Features of the edges, for layers that read them.
std::vector<GraphRelations> relations_of_edges(const Variable& edges) {
  if (!edges.defined()) return {};
  std::vector<GraphRelations> relations(1);
  relations[0].edge_feats = edges;
  return relations;
}

}  // namespace

GraphModel::GraphModel(const ModelDescription& description, const Communicator& comm, Generator& gen,
                       bool cached)
    : description_(description.checked()) {
  const ModelDescription& d = description_;
  const ModelType& type = model_type(d.type);
  require<InputError>(!type.is_potential, "a GraphModel of type ", d.type,
                      ", which is a potential, expected ",
                      model_types_where([](const ModelType& each) { return !each.is_potential; }));
  require<InputError>(!type.has_relations || (!d.node_types.empty() && !d.edge_types.empty()),
                      "a GraphModel of type ", d.type, " with ", d.node_types.size(), " node types and ",
                      d.edge_types.size(), " edge types, expected some of each");
  for (const std::string& of_type : d.node_types)
    if (const auto width = d.inputs.find(of_type); width != d.inputs.end()) {
      auto linear = std::make_unique<Linear>(width->second, d.in_feats, gen);
      inputs_.register_module(module_name(of_type), *linear);
      inputs_.of_type.emplace(of_type, std::move(linear));
    }
  if (!type.is_stack()) {
    mesh_.emplace(MeshGraphNetOptions{.node_feats = d.in_feats,
                                      .edge_feats = d.edge_feats,
                                      .out_feats = d.out_feats,
                                      .hidden = d.hidden,
                                      .blocks = static_cast<int>(d.layers),
                                      .mlp_layers = static_cast<int>(d.mlp_layers),
                                      .activation = activation_of(d.activation),
                                      .normalize = d.normalize},
                  comm, gen);
    register_module("network", *mesh_);
    return;
  }
  stack_.emplace(d, comm, gen, cached);
  for (const auto& [name, part] : stack_->parts()) register_module(name, *part);
  if (!inputs_.of_type.empty()) register_module("input", inputs_);
}

Variable GraphModel::operator()(const Graph& graph, const Variable& x, const Variable& edges) {
  return graph.comm().agree([&] {
    check(graph, x, edges);
    return mesh_ ? (*mesh_)(graph, x, edges) : (*stack_)(graph, x, relations_of_edges(edges));
  });
}

Variable GraphModel::operator()(const SampleBatch& batch, const Variable& x, const Variable& edges) {
  return batch.graph().comm().agree([&] {
    require<InputError>(stack_.has_value(), "a network of type ", description_.type,
                        " on a SampleBatch, expected one with a readout");
    check(batch.graph(), x, edges);
    return (*stack_)(batch, x, relations_of_edges(edges));
  });
}

void GraphModel::check(const Graph& graph, const Variable& x, const Variable& edges) const {
  const ModelDescription& d = description_;
  require<InputError>(!model_type(d.type).has_relations, "a network of type ", d.type,
                      ", which reads relations, on one matrix, expected rows of each node type");
  const auto check_rows = [&](const char* name, const Variable& rows, Index count, Index width) {
    const Shape expected{count, width};
    require<ShapeError>(rows.defined(), "a network of type ", d.type, " without ", name, ", expected ",
                        expected);
    require<ShapeError>(rows.shape() == expected, "a network of type ", d.type, " on ", name, " of shape ",
                        rows.shape(), ", expected ", expected);
  };
  require_types(d, graph);
  check_rows("x", x, graph.num_src_nodes(), d.in_feats);
  if (d.edge_feats > 0) check_rows("edges", edges, graph.num_edges(), d.edge_feats);
  require<ShapeError>(d.edge_feats > 0 || !edges.defined(), "a network of type ", d.type,
                      " on rows of edges, expected none, because it reads none");
  require_weights_read(d, graph.edge_weight().defined());
}

GraphModel::Rows GraphModel::operator()(const Graph& graph, const Rows& x) {
  return graph.comm().agree([&] {
    require<InputError>(model_type(description_.type).has_relations, "a network of type ", description_.type,
                        " on rows of node types, expected one matrix, because it reads no relations");
    check(graph, x);
    Rows rows;
    for (const auto& [type, given] : x) {
      const auto linear = inputs_.of_type.find(type);
      rows.emplace(type, linear == inputs_.of_type.end() ? given : (*linear->second)(given));
    }
    const HomogeneousForm& form = graph.to_homogeneous();
    const std::vector<GraphRelations> relations{relations_of(graph, model_type(description_.type))};
    const Variable y = (*stack_)(form.graph, form.concat(rows), relations);
    Rows results;
    for (const std::string& type : form.node_types) results.emplace(type, form.rows_of(y, type));
    return results;
  });
}

void GraphModel::check(const Graph& graph, const Rows& x) const {
  const ModelDescription& d = description_;
  require_types(d, graph);
  for (const EdgeType& type : graph.edge_types())
    require_weights_read(d, graph[type].edge_weight().defined());
  for (const std::string& type : d.node_types) {
    const auto rows = x.find(type);
    const auto width = d.inputs.find(type);
    const Shape expected{graph.num_nodes(type), width == d.inputs.end() ? d.in_feats : width->second};
    require<InputError>(rows != x.end() && rows->second.defined(), "a network of type ", d.type,
                        " without rows of '", type, "', expected ", expected);
    require<ShapeError>(rows->second.shape() == expected, "a network of type ", d.type, " on rows of '", type,
                        "' of shape ", rows->second.shape(), ", expected ", expected);
  }
  for (const auto& of_type : x) static_cast<void>(find_node_type(d.node_types, of_type.first));
}

std::unique_ptr<GraphModel> load_model(const Communicator& comm, const std::string& path,
                                       const WeightNames& names) {
  return comm.agree([&] {
    ModelFile file = read_model_file(comm, path);
    const ModelType& type = model_type(file.description.type);
    require<InputError>(!type.is_potential, path, ": is a network of type ", type.name,
                        ", expected load_potential for it");
    if (file.description.type == "gcn" && file.description.gcn_norm.empty())
      file.description.gcn_norm = gcn_norm_of_weights(comm, file.weights, names);
    if (names.missing.empty()) require_enough_weights(comm, file);
    Generator gen(0);
    auto model = std::make_unique<GraphModel>(file.description, comm, gen);
    load_model_weights(comm, file.weights, *model, names);
    model->eval();
    return model;
  });
}

void save_model(const Communicator& comm, const std::string& path, const GraphModel& model) {
  comm.agree([&] {
    ModelDescription description = model.description();
    description.weights.clear();
    save_weights(comm, path, model, real_type, {{model_key, description.to_json()}});
  });
}

}}  // namespace sar
