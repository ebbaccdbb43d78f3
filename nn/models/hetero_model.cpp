// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/models/hetero_model.hpp>
#include <sar/nn/models/model_file.hpp>
#include <sar/nn/models/relations.hpp>
#include <sar/nn/models/weight_file.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

HeteroModel::HeteroModel(const ModelDescription& description, const Communicator& comm, Generator& gen)
    : description_(description.checked()) {
  const ModelDescription& d = description_;
  require<InputError>(model_type(d.type).has_relations, "a HeteroModel of type ", d.type,
                      ", which reads no relations, expected ",
                      model_types_where([](const ModelType& each) { return each.has_relations; }));
  require<InputError>(!d.node_types.empty() && !d.edge_types.empty(), "a HeteroModel of ",
                      d.node_types.size(), " node types and ", d.edge_types.size(),
                      " edge types, expected some of each");
  for (const std::string& type : d.node_types)
    if (const auto width = d.inputs.find(type); width != d.inputs.end()) {
      auto linear = std::make_unique<Linear>(width->second, d.in_feats, gen);
      inputs_.register_module(module_name(type), *linear);
      inputs_.of_type.emplace(type, std::move(linear));
    }
  stack_ = std::make_unique<LayerStack>(d, comm, gen);
  for (const auto& [name, part] : stack_->parts()) register_module(name, *part);
  if (!inputs_.of_type.empty()) register_module("input", inputs_);
}

HeteroModel::Rows HeteroModel::operator()(const Graph& graph, const Rows& x) {
  return graph.comm().agree([&] {
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

void HeteroModel::check(const Graph& graph, const Rows& x) const {
  const ModelDescription& d = description_;
  const auto names = [](const std::vector<EdgeType>& types) {
    return joined(types, &EdgeType::canonical_name);
  };
  require<InputError>(graph.node_types() == d.node_types, "a network of type ", d.type,
                      " on a graph of the node types ", joined(graph.node_types()), ", expected ",
                      joined(d.node_types));
  for (const EdgeType& type : graph.edge_types())
    require_weights_read(d, graph[type].edge_weight().defined());
  require<InputError>(graph.edge_types() == d.edge_types, "a network of type ", d.type,
                      " on a graph of the edge types ", names(graph.edge_types()), ", expected ",
                      names(d.edge_types));
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

std::unique_ptr<HeteroModel> load_hetero_model(const Communicator& comm, const std::string& path,
                                               const WeightNames& names) {
  return comm.agree([&] {
    const ModelFile file = read_model_file(comm, path);
    require<InputError>(model_type(file.description.type).has_relations, path, ": is a network of type ",
                        file.description.type, ", which reads no relations, expected load_model for it");
    if (names.missing.empty()) require_enough_weights(comm, file);
    Generator gen(0);
    auto model = std::make_unique<HeteroModel>(file.description, comm, gen);
    load_model_weights(comm, file.weights, *model, names);
    model->eval();
    return model;
  });
}

void save_model(const Communicator& comm, const std::string& path, const HeteroModel& model) {
  comm.agree([&] {
    ModelDescription description = model.description();
    description.weights.clear();
    save_weights(comm, path, model, real_type, {{model_key, description.to_json()}});
  });
}
}}  // namespace sar
