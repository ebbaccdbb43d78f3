// SPDX-License-Identifier: MIT
#include <sar/bindings/c/handle_table.hpp>

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, std::shared_ptr<Object>> objects;
  std::uintptr_t last = 0;
};

/// The table is never destroyed: handles that a program has not freed would otherwise be released after
/// MPI_Finalize.
Table& table() {
  static Table* const all = new Table;
  return *all;
}

std::uintptr_t number_of(const void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

}  // namespace

ModelObject::ModelObject(const Communicator& c, std::unique_ptr<GraphModel> made)
    : Object(c, name),
      model(std::move(made)),
      network(*model),
      plan(model->description()),
      description(plan.to_json()),
      parameters(network.named_parameters()) {}

void add_arguments(CollectiveCall& call, const ModelObject& model) {
  const std::string set = joined(model.set_parameters, [&](const auto& parameter) {
    const auto& [index, fingerprint] = parameter;
    return concat(model.parameters[static_cast<std::size_t>(index)].name, " (hash ", fingerprint, ")");
  });
  call.equal("description of the model", model.description).equal("list of parameters that were set", set);
}

void add_arguments(CollectiveCall& call, const GraphObject& graph) {
  call.equal("number of nodes of the graph", graph.graph.num_global_nodes())
      .equal("number of edges of the graph", graph.graph.num_global_edges());
}

int after_comparison(int status, const std::shared_ptr<ModelObject>& model) noexcept {
  if (status == SAR_OK && model != nullptr) model->set_parameters.clear();
  return status;
}

void* new_handle(std::shared_ptr<Object> object) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const std::uintptr_t number = 2 * all.last + 1;  // odd, so that it is not the address of an object
  all.objects.emplace(number, std::move(object));
  ++all.last;
  return reinterpret_cast<void*>(number);
}

std::shared_ptr<Object> find_object(const void* handle) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.objects.find(number_of(handle));
  return found == all.objects.end() ? nullptr : found->second;
}

std::shared_ptr<Object> object_of_only_communicator() {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (all.objects.empty()) return nullptr;
  const std::shared_ptr<Object>& any = all.objects.begin()->second;
  const bool only = std::ranges::all_of(
      all.objects, [&](const auto& each) { return each.second->comm.handle() == any->comm.handle(); });
  return only ? any : nullptr;
}

void forget_handle(const void* handle) {
  std::shared_ptr<Object> last;  // released without the lock, because that may communicate
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.objects.find(number_of(handle));
  if (found == all.objects.end()) return;
  last = std::move(found->second);
  all.objects.erase(found);
}

std::shared_ptr<Object> live_object(const Given& given) {
  std::shared_ptr<Object> found = find_object(given.handle);
  if (found == nullptr)
    throw HandleError(concat("the handle '", given.argument, "' is ",
                             given.handle == nullptr ? "null" : "freed or was never made",
                             ", expected one that a function of sar.h has made"));
  return found;
}

GraphModel& untyped(const ModelObject& model) {
  require<InputError>(!model_type(model.plan.type).has_relations, "a network of type ", model.plan.type,
                      ", which reads node and edge types, on a sar_graph, expected a sar_hetero and the "
                      "functions that begin with sar_hetero_");
  return *model.model;
}

GraphModel& typed(const ModelObject& model) {
  require<InputError>(model_type(model.plan.type).has_relations, "a network of type ", model.plan.type,
                      ", which reads no node and edge types, on a sar_hetero, expected ",
                      model_types_where([](const ModelType& type) { return type.has_relations; }));
  return *model.model;
}

void require_statistics(ModelObject& model) {
  const MeshGraphNet* mesh = untyped(model).mesh_graph_net();
  require<InputError>(
      mesh == nullptr || mesh->has_statistics(),
      "the description of the model has \"normalize\": true, but the model has no statistics: "
      "call sar_model_update_statistics() first");
}

void require_optimizer_of(const ModelObject& model, const OptimizerObject& optimizer) {
  require<InputError>(optimizer.model.get() == &model,
                      "the optimizer was made for another model, expected one of this model");
}

}}}  // namespace sar
