// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/bindings/python/module_tree.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <cmath>
#include <set>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

nb::dict state_of(const Module& self) {
  nb::dict state;
  for (const NamedParameter& named : self.named_parameters())
    state[named.name.c_str()] = PyTensor{named.parameter};
  for (const NamedBuffer& named : self.named_buffers())
    state[named.name.c_str()] = PyTensor{Variable(named.tensor)};
  for (const NamedCounter& named : self.named_counters()) state[named.name.c_str()] = named.value->get();
  return state;
}

/// Checks everything before the first value is written. Counters that torch does not have may be missing.
/// Returns the names that the state lacks, and those that the module lacks.
std::pair<std::vector<std::string>, std::vector<std::string>> load_state(Module& self, const nb::dict& state,
                                                                         bool strict) {
  struct Entry {
    Tensor to, from;
  };
  std::vector<Entry> entries;
  std::vector<std::pair<NamedCounter, std::uint64_t>> counters;
  std::set<std::string> names;
  std::vector<std::string> missing, unexpected;
  const auto find = [&](const std::string& name) -> std::optional<nb::object> {
    names.insert(name);
    if (state.contains(name.c_str())) return nb::object(state[name.c_str()]);
    require<InputError>(!strict, "the state has no '", name, "', which the module has");
    missing.push_back(name);
    return std::nullopt;
  };
  const auto take = [&](const std::string& name, const Tensor& to) {
    const auto found = find(name);
    if (!found) return;
    const Tensor from = tensor_of(*found);
    require<ShapeError>(from.shape() == to.shape(), "'", name, "' has shape ", from.shape(),
                        " in the state, expected ", to.shape());
    entries.push_back({to, from});
  };
  for (const NamedParameter& named : self.named_parameters())
    take(named.name, Variable(named.parameter).value());
  for (const NamedBuffer& named : self.named_buffers()) take(named.name, named.tensor);
  for (const NamedCounter& named : self.state_dict_counters()) find(named.name);
  for (const NamedCounter& named : self.named_counters()) {
    names.insert(named.name);
    if (state.contains(named.name.c_str()))
      counters.emplace_back(named, nb::cast<std::uint64_t>(nb::int_(state[named.name.c_str()])));
  }
  for (const auto& [key, value] : state) {
    const std::string name = nb::cast<std::string>(key);
    if (names.contains(name)) continue;
    require<InputError>(!strict, "the state has '", name, "', which the module has not");
    unexpected.push_back(name);
  }
  const Call call;
  for (Entry& entry : entries) {
    entry.to.save();
    entry.to.copy_from(entry.from);
  }
  for (auto& [named, value] : counters) *named.value = value;
  return {std::move(missing), std::move(unexpected)};
}

}  // namespace

void bind_modules(Definitions& module) {
  using namespace nb::literals;
  nb::class_<Generator>(module, "Generator",
                        "Random streams of parameters and dropouts, in order of construction.")
      .def(nb::init<std::uint64_t>(), "seed"_a)
      .def_prop_ro("seed", &Generator::seed);
  module.def(
      "manual_seed", [](std::uint64_t seed) { generator() = std::make_unique<Generator>(seed); }, "seed"_a,
      "Local; the same on all ranks. Seeds the layers that are made from now on.");
  module.def("_generator", [] { return std::pair(generator()->seed(), generator()->num_streams()); });
  module.def(
      "_set_generator",
      [](std::uint64_t seed, std::uint64_t streams) {
        generator() = std::make_unique<Generator>(seed, streams);
      },
      "seed"_a, "streams"_a);
  module.def(
      "_drawn",
      [](const std::vector<Index>& extents, const std::string& distribution, double scale) {
        const RandomKey key = generator()->next_stream();
        const Shape shape(extents);
        require<InputError>(distribution == "normal" || distribution == "uniform", "the distribution is '",
                            distribution, "', expected 'normal' or 'uniform'");
        if (distribution == "uniform") return PyTensor{Variable(init::uniform(shape, scale, key))};
        // the deviation of xavier_normal is gain sqrt(2 / (rows + columns))
        const double gain = scale * std::sqrt((static_cast<double>(shape.size()) + 1) / 2);
        const Tensor column = init::xavier_normal(Shape{shape.size(), 1}, gain, key);
        return PyTensor{reshape(Variable(column), shape)};
      },
      "shape"_a, "distribution"_a, "scale"_a);

  nb::class_<Module>(module, "ModuleBase", nb::dynamic_attr(), "A layer or network with named parameters.")
      .def(
          "named_parameters",
          [](const Module& self, bool remove_duplicate) {
            std::vector<std::pair<std::string, PyTensor>> all;
            for (const NamedParameter& named :
                 remove_duplicate ? self.unique_parameters() : self.named_parameters())
              all.emplace_back(named.name, PyTensor{named.parameter});
            return all;
          },
          "remove_duplicate"_a = true,
          "Local. Names, as torch has them, and parameters. One of several names has its first one, or, "
          "without remove_duplicate, each.")
      .def("parameters",
           [](const Module& self) {
             std::vector<PyTensor> all;
             for (const Variable& parameter : self.parameters()) all.push_back({parameter});
             return all;
           })
      .def("named_buffers",
           [](const Module& self) {
             std::vector<std::pair<std::string, PyTensor>> all;
             for (const NamedBuffer& named : self.named_buffers())
               all.emplace_back(named.name, PyTensor{Variable(named.tensor)});
             return all;
           })
      .def("state_dict", &state_of,
           "Local. Parameters, buffers and counters by name. Tensors share the module's memory. Beside what "
           "torch "
           "has, it has the number of calls of each dropout, with which draws go on.")
      .def(
          "load_state_dict",
          [](Module& self, const nb::dict& state, bool strict) {
            return nb::module_::import_("sar.nn.modules")
                .attr("_IncompatibleKeys")(*nb::cast<nb::tuple>(nb::cast(load_state(self, state, strict))));
          },
          "state"_a, "strict"_a = true,
          nb::sig(
              "def load_state_dict(self, state: dict, strict: bool = True) -> tuple[list[str], list[str]]"),
          "Local; the same on all ranks. Copies tensors or arrays into the module. Raises InputError for "
          "names that only "
          "one of them has, if strict, ShapeError for other shapes; the module is then unchanged. Returns, "
          "as torch, missing_keys and unexpected_keys, which are empty "
          "if strict. A state "
          "without calls of dropouts, as torch's, leaves them as they are.")
      .def(
          "train",
          [](nb::handle_t<Module> self, bool mode) {
            nb::cast<Module&>(self).train(mode);
            return nb::borrow(self);
          },
          "mode"_a = true)
      .def("eval",
           [](nb::handle_t<Module> self) {
             nb::cast<Module&>(self).eval();
             return nb::borrow(self);
           })
      .def_prop_ro("training", &Module::is_training)
      .def(
          "zero_grad",
          [](Module& self, bool set_to_none) {
            require_cleared(set_to_none);
            self.zero_grad();
          },
          "set_to_none"_a = true, "Local. Clears the gradients. set_to_none is torch's: False is refused.")
      .def("_freeze", &Module::freeze, "name"_a)
      .def("_unfreeze", &Module::unfreeze, "name"_a)
      .def(
          "_set_training", [](Module& self, bool training) { self.train(training); }, "training"_a);

  nb::class_<ModuleTree, Module>(module, "ModuleTree")
      .def(nb::init<>())
      .def("_set_parameter",
           [](ModuleTree& self, const std::string& name, const Variable& value) { self.set(name, value); })
      .def("_set_buffer", [](ModuleTree& self, const std::string& name,
                             const Variable& value) { self.set_buffer(name, value.value()); })
      .def("_set_module",
           [](ModuleTree& self, const std::string& name, Module& part) { self.set(name, part); })
      .def("_unset", &ModuleTree::unset)
      .def("_reorder", [](ModuleTree& self, const std::vector<std::string>& names) { self.reorder(names); });

  module.def(
      "sync_params",
      [](Module& net, std::optional<Communicator> comm) {
        const Communicator& all = or_default(comm);
        compute([&] { sync_params(all, net); });
      },
      "module"_a, "comm"_a = nb::none(), "Collective. Copies parameters and buffers of rank 0 to all ranks.");
  module.def(
      "compare_params",
      [](const Module& net, std::optional<Communicator> comm) {
        const Communicator& all = or_default(comm);
        compute([&] { compare_params(all, net); });
      },
      "module"_a, "comm"_a = nb::none(),
      "Collective. Raises InputError unless all ranks have the same parameters.");
}

}}}  // namespace sar
