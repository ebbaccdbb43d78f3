// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/models/gcn_norm.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/models/model_file.hpp>
#include <sar/nn/models/weight_file.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <functional>
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
  require<InputError>(type.is_graph_model(), "a GraphModel of type ", d.type, ", which ",
                      type.is_potential ? "is a potential" : "reads relations", ", expected ",
                      model_types_where(std::mem_fn(&ModelType::is_graph_model)));
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
  const auto check_rows = [&](const char* name, const Variable& rows, Index count, Index width) {
    const Shape expected{count, width};
    require<ShapeError>(rows.defined(), "a network of type ", d.type, " without ", name, ", expected ",
                        expected);
    require<ShapeError>(rows.shape() == expected, "a network of type ", d.type, " on ", name, " of shape ",
                        rows.shape(), ", expected ", expected);
  };
  check_rows("x", x, graph.num_src_nodes(), d.in_feats);
  if (d.edge_feats > 0) check_rows("edges", edges, graph.num_edges(), d.edge_feats);
  require<ShapeError>(d.edge_feats > 0 || !edges.defined(), "a network of type ", d.type,
                      " on rows of edges, expected none, because it reads none");
  require_weights_read(d, graph.edge_weight().defined());
}

std::unique_ptr<GraphModel> load_model(const Communicator& comm, const std::string& path,
                                       const WeightNames& names) {
  return comm.agree([&] {
    ModelFile file = read_model_file(comm, path);
    const ModelType& type = model_type(file.description.type);
    require<InputError>(type.is_graph_model(), path, ": is a network of type ", type.name,
                        type.is_potential ? ", expected load_potential for it"
                                          : ", which reads relations, expected load_hetero_model for it");
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
