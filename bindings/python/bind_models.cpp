// SPDX-License-Identifier: MIT
#include <sar/bindings/python/module.hpp>
#include <sar/bindings/python/module_tree.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/models/weight_file.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <nanobind/stl/unique_ptr.h>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

constexpr EnumName<SafetensorsType> type_names[] = {{SafetensorsType::float16, "float16"},
                                                    {SafetensorsType::bfloat16, "bfloat16"},
                                                    {SafetensorsType::float32, "float32"},
                                                    {SafetensorsType::float64, "float64"}};

}  // namespace

void bind_models(Definitions& module) {
  using namespace nb::literals;
  nb::class_<GraphModel, Module>(module, "GraphModel",
                                 "The network of a description, as the program train makes it.")
      .def(
          "__init__",
          [](GraphModel* self, const std::string& json, std::optional<Communicator> comm, bool cached) {
            new (self) GraphModel(ModelDescription::from_json(json), or_default(comm), *generator(), cached);
          },
          "json"_a, "comm"_a = nb::none(), "cached"_a = false, remembered, restoring)
      .def(
          "__call__",
          [](GraphModel& self, const Graph& graph, const Variable& feat,
             const std::optional<Variable>& edges) {
            return compute([&] { return self(graph, feat, or_undefined(edges)); });
          },
          "graph"_a, "feat"_a, "edges"_a = nb::none(), "Collective.")
      .def_prop_ro("_json", [](const GraphModel& self) { return self.description().to_json(); });
  module.def(
      "load_model",
      [](nb::handle path, std::optional<Communicator> comm) {
        const Communicator& all = or_default(comm);
        const std::string file = path_of(path);
        return compute([&] { return load_model(all, file); });
      },
      "path"_a, "comm"_a = nb::none(),
      "Collective. The network and the weights of a file of save_model() or train, in evaluation mode.");
  module.def(
      "save_model",
      [](const GraphModel& model, nb::handle path, std::optional<Communicator> comm) {
        const Communicator& all = or_default(comm);
        const std::string file = path_of(path);
        compute([&] { save_model(all, file, model); });
      },
      "model"_a, "path"_a, "comm"_a = nb::none(), "Collective.");
  module.def(
      "load_weights",
      [](Module& net, nb::handle path, const std::map<std::string, std::string>& rename,
         const std::vector<std::string>& drop, const std::vector<std::string>& missing,
         std::optional<Communicator> comm) {
        const Communicator& all = or_default(comm);
        const std::string file = path_of(path);
        const WeightNames names{.drop = drop, .rename = rename, .missing = missing};
        return compute([&] { return load_model_weights(all, file, net, names); });
      },
      "module"_a, "path"_a, "rename"_a = std::map<std::string, std::string>(),
      "drop"_a = std::vector<std::string>(), "missing"_a = std::vector<std::string>(), "comm"_a = nb::none(),
      "Collective. Fills a module from a .safetensors file, of save_weights() or of torch. Returns a line "
      "for each "
      "name that was matched with another. Raises InputError, and changes nothing, if names or shapes do not "
      "match.");
  module.def(
      "save_weights",
      [](const Module& net, nb::handle path, const std::optional<std::string>& dtype,
         const std::map<std::string, std::string>& metadata, std::optional<Communicator> comm) {
        const Communicator& all = or_default(comm);
        const std::string file = path_of(path);
        const SafetensorsType type = dtype ? choice(type_names, *dtype, "dtype") : real_type;
        compute([&] { save_weights(all, file, net, type, metadata); });
      },
      "module"_a, "path"_a, "dtype"_a = nb::none(), "metadata"_a = std::map<std::string, std::string>(),
      "comm"_a = nb::none(), "Collective. Writes state_dict() to a .safetensors file, which torch reads.");
}

}}}  // namespace sar
