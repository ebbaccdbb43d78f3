// SPDX-License-Identifier: MIT
#include <sar/bindings/python/module.hpp>
#include <sar/bindings/python/module_tree.hpp>
#include <sar/core/text.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/nn/train/checkpoint.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/lr_scheduler.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <deque>
#include <memory>
#include <set>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

/// The parameters of an optimizer as one module, whose gradients are gathered and clipped together.
class Parameters : public Module {
 public:
  void add(const std::vector<NamedParameter>& all) {
    for (const NamedParameter& named : all)
      register_parameter(std::to_string(own_.size()), own_.emplace_back(named.parameter));
  }
  [[nodiscard]] std::size_t size() const noexcept { return own_.size(); }

 private:
  std::deque<Variable> own_;
};

/// Parameters without names are numbered from `first` on.
std::vector<NamedParameter> parameters_of(nb::handle given, std::size_t first) {
  if (nb::isinstance<Module>(given)) return nb::cast<const Module&>(given).named_parameters();
  std::vector<NamedParameter> all;
  if (nb::isinstance<PyTensor>(given))
    return {{std::to_string(first), nb::cast<Variable>(nb::borrow(given))}};
  for (const nb::handle each : given) {
    NamedParameter named{std::to_string(first + all.size()), {}};
    if (nb::isinstance<nb::tuple>(each) && nb::len(each) == 2) {
      named = {nb::cast<std::string>(each[0]), nb::cast<Variable>(nb::object(each[1]))};
    } else {
      require<InputError>(nb::try_cast(each, named.parameter, false), "a parameter of an optimizer is a ",
                          nb::cast<std::string>(each.type().attr("__name__")),
                          ", expected a sar.Tensor or a pair of a name and a sar.Tensor");
    }
    all.push_back(std::move(named));
  }
  require<InputError>(!all.empty(), "an optimizer got no parameters");
  return all;
}

/// Some parameters with options of their own.
struct ParameterGroup {
  std::vector<NamedParameter> parameters;
  nb::dict options;
  std::unique_ptr<Optimizer> optimizer;
};

/// An optimizer whose step adds the gradients of all ranks first. It has a group of parameters, or several.
class PyOptimizer : NonCopyable {
 public:
  using Make = std::unique_ptr<Optimizer> (*)(const std::vector<NamedParameter>&, const nb::dict&);

  PyOptimizer(nb::handle parameters, const nb::dict& defaults, Make make,
              const std::optional<Communicator>& comm)
      : defaults_(defaults), make_(make), comm_(or_default(comm)) {
    const bool one = nb::isinstance<Module>(parameters) || nb::isinstance<PyTensor>(parameters);
    require<InputError>(one || nb::isinstance<nb::iterable>(parameters), "params is ",
                        text_of(nb::repr(parameters)),
                        ", expected a module, its parameters(), or a list of groups of parameters");
    const nb::list all = one ? nb::list() : nb::list(parameters);
    if (nb::len(all) == 0 || !nb::isinstance<nb::dict>(all[0])) {
      add(one ? parameters : nb::handle(all), nb::dict());
      return;
    }
    require<InputError>(nb::len(nb::object(defaults["decay_only"])) == 0,
                        "decay_only beside groups of parameters, expected weight_decay of the groups");
    for (const nb::handle group : all) add_group(group);
  }

  void add_group(nb::handle given) {
    require<InputError>(nb::isinstance<nb::dict>(given), "a group of parameters is a ",
                        nb::cast<std::string>(given.type().attr("__name__")),
                        ", expected a dict with 'params' and options");
    const auto group = nb::cast<nb::dict>(nb::borrow(given));
    require<InputError>(group.contains("params"), "a group of parameters has no 'params'");
    nb::dict own;
    for (const auto& [key, value] : group) {
      const std::string name = nb::cast<std::string>(key);
      require<InputError>(name == "params" || (defaults_.contains(key) && name != "decay_only"),
                          "a group of parameters has no option '", name, "', expected one of ", options());
      if (name != "params") own[key] = value;
    }
    add(group["params"], own);
  }

  void gather_grads() { sar::gather_grads(comm_, parameters_); }
  void step() {
    gather_grads();
    for (ParameterGroup& group : groups_) group.optimizer->step();
  }
  void zero_grad() {
    for (ParameterGroup& group : groups_) group.optimizer->zero_grad();
  }
  double clip_norm(double most) { return gather_grads(), clip_grad_norm(parameters_, most); }
  void clip_value(double most) { gather_grads(), clip_grad_value(parameters_, most); }

  [[nodiscard]] std::deque<ParameterGroup>& groups() noexcept { return groups_; }
  [[nodiscard]] ParameterGroup& group(std::size_t i) {
    require<InputError>(i < groups_.size(), "there is no group ", i, " of parameters");
    return groups_[i];
  }
  [[nodiscard]] const Communicator& comm() const noexcept { return comm_; }

 private:
  void add(nb::handle parameters, const nb::dict& own) {
    ParameterGroup group{parameters_of(parameters, parameters_.size()), nb::dict(), nullptr};
    for (const auto& [key, value] : defaults_) group.options[key] = value;
    for (const auto& [key, value] : own) group.options[key] = value;
    std::set<const void*> taken;
    std::set<std::string> names;
    for (const ParameterGroup& other : groups_)
      for (const NamedParameter& named : other.parameters) {
        taken.insert(named.parameter.gradient().get());
        names.insert(named.name);
      }
    for (NamedParameter& named : group.parameters) {
      require<InputError>(
          !named.parameter.requires_grad() || !taken.contains(named.parameter.gradient().get()),
          "the parameter '", named.name, "' is in two groups, expected one");
      if (names.contains(named.name)) named.name = concat(groups_.size(), ".", named.name);
    }
    group.optimizer = make_(group.parameters, group.options);
    parameters_.add(group.parameters);
    groups_.push_back(std::move(group));
  }

  [[nodiscard]] std::string options() const {
    std::vector<std::string> names{"params"};
    for (const auto& [key, value] : defaults_)
      if (nb::cast<std::string>(key) != "decay_only") names.push_back(nb::cast<std::string>(key));
    return joined(names, [](const std::string& name) { return concat("'", name, "'"); });
  }

  nb::dict defaults_;
  Make make_;
  Communicator comm_;
  Parameters parameters_;
  std::deque<ParameterGroup> groups_;
};

double number(const nb::dict& options, const char* name) {
  const nb::object value = options[name];
  double found = 0;
  require<InputError>(nb::try_cast(value, found), "the optimizer option ", name, " is ", text_of(value),
                      ", expected a number");
  return found;
}

std::vector<std::string> decay_only(const nb::dict& options) {
  return nb::cast<std::vector<std::string>>(nb::object(options["decay_only"]));
}

std::unique_ptr<Optimizer> make_sgd(const std::vector<NamedParameter>& all, const nb::dict& options) {
  return std::make_unique<SGD>(all, SGDOptions{.lr = number(options, "lr"),
                                               .momentum = number(options, "momentum"),
                                               .weight_decay = number(options, "weight_decay"),
                                               .decay_only = decay_only(options)});
}

template <class O>
std::unique_ptr<Optimizer> make_adam(const std::vector<NamedParameter>& all, const nb::dict& options) {
  std::pair<double, double> betas;
  const nb::object given = options["betas"];
  require<InputError>(nb::try_cast(given, betas), "the optimizer option betas is ", text_of(given),
                      ", expected a pair of numbers");
  return std::make_unique<O>(all, AdamOptions{.lr = number(options, "lr"),
                                              .beta1 = betas.first,
                                              .beta2 = betas.second,
                                              .eps = number(options, "eps"),
                                              .weight_decay = number(options, "weight_decay"),
                                              .decay_only = decay_only(options)});
}

/// The rate, or the rates of several groups.
nb::object rates_of(PyOptimizer& self) {
  if (self.groups().size() == 1) return nb::float_(self.group(0).optimizer->lr());
  nb::list all;
  for (const ParameterGroup& group : self.groups()) all.append(group.optimizer->lr());
  return all;
}

nb::dict state_of(PyOptimizer& self) {
  nb::dict state;
  for (const ParameterGroup& group : self.groups()) {
    for (const NamedBuffer& named : group.optimizer->named_buffers())
      state[named.name.c_str()] = PyTensor{Variable(named.tensor)};
    for (const NamedCounter& named : group.optimizer->named_counters())
      state[named.name.c_str()] = named.value->get();
  }
  state["lr"] = rates_of(self);
  return state;
}

void load_state(PyOptimizer& self, const nb::dict& state) {
  std::set<std::string> names;
  const auto value = [&](const std::string& name) {
    names.insert(name);
    require<InputError>(state.contains(name.c_str()), "the state has no '", name,
                        "', which the optimizer has");
    return nb::object(state[name.c_str()]);
  };
  std::vector<std::pair<Tensor, Tensor>> copies;
  std::vector<std::pair<NamedCounter, std::uint64_t>> counts;
  for (const ParameterGroup& group : self.groups()) {
    for (const NamedBuffer& named : group.optimizer->named_buffers()) {
      copies.emplace_back(named.tensor, tensor_of(value(named.name)));
      require<ShapeError>(copies.back().second.shape() == named.tensor.shape(), "'", named.name,
                          "' has shape ", copies.back().second.shape(), " in the state, expected ",
                          named.tensor.shape());
    }
    for (const NamedCounter& named : group.optimizer->named_counters())
      counts.emplace_back(named, nb::cast<std::uint64_t>(value(named.name)));
  }
  const nb::object given = value("lr");
  std::vector<double> rates;
  if (double rate = 0; nb::try_cast(given, rate))
    rates = {rate};
  else
    rates = nb::cast<std::vector<double>>(given);
  require<InputError>(rates.size() == self.groups().size(), "the state has ", rates.size(),
                      " groups of parameters, the optimizer ", self.groups().size());
  for (const auto& [key, given_value] : state)
    require<InputError>(names.contains(nb::cast<std::string>(key)), "the state has '",
                        nb::cast<std::string>(key), "', which the optimizer has not");
  const Call call;
  const Transaction transaction;  // of a rate that is refused
  for (auto& [to, from] : copies) {
    to.save();
    to.copy_from(from);
  }
  for (auto& [named, count] : counts) *named.value = count;
  for (std::size_t i = 0; i < rates.size(); ++i) self.group(i).optimizer->set_lr(rates[i]);
}

/// A schedule of each group of an optimizer.
template <class S>
class PySchedule : public LRScheduler {
 public:
  template <class Options>
  PySchedule(PyOptimizer& optimizer, const Options& options)
      : LRScheduler(*optimizer.group(0).optimizer), all_(optimizer) {
    for (const ParameterGroup& group : optimizer.groups())
      groups_.push_back(std::make_unique<S>(*group.optimizer, options));
  }
  [[nodiscard]] std::string kind() const override { return groups_.front()->kind(); }
  void step(double metric) override {
    for (const auto& group : groups_) group->step(metric);
  }
  void set_base_lr(double lr) override {
    for (const auto& group : groups_) group->set_base_lr(lr);
  }
  /// The values of the groups but the first have their number ahead of the name.
  [[nodiscard]] std::map<std::string, std::string> state() const override {
    std::map<std::string, std::string> all;
    for (std::size_t i = 0; i < groups_.size(); ++i)
      for (const auto& [name, value] : groups_[i]->state()) all[prefix(i) + name] = value;
    return all;
  }
  void load_state(const std::map<std::string, std::string>& state) override {
    std::vector<std::map<std::string, std::string>> of_groups(groups_.size()), before;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      before.push_back(groups_[i]->state());
      for (const auto& [name, value] : state)
        if (i == 0 || name.starts_with(prefix(i))) of_groups[i][name.substr(prefix(i).size())] = value;
    }
    try {
      for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i]->load_state(of_groups[i]);
    } catch (...) {
      for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i]->load_state(before[i]);
      throw;
    }
  }

  [[nodiscard]] std::vector<double> rates() const {
    std::vector<double> all;
    for (const ParameterGroup& group : all_.groups()) all.push_back(group.optimizer->lr());
    return all;
  }

 private:
  static std::string prefix(std::size_t i) { return i == 0 ? std::string() : concat(i, "."); }
  PyOptimizer& all_;
  std::vector<std::unique_ptr<S>> groups_;
};

template <class S>
nb::class_<PySchedule<S>, LRScheduler> schedule(Definitions& module, const char* name) {
  nb::class_<PySchedule<S>, LRScheduler> type(module, name);
  type.def("get_last_lr", &PySchedule<S>::rates, "Local. The rate of each group of parameters.");
  type.def(
      "set_base_lr", [](PySchedule<S>& self, double lr) { compute([&] { self.set_base_lr(lr); }); },
      nb::arg("lr"),
      "Local; the same on all ranks. lr: the rate of all groups to which the schedule applies its factors. "
      "The "
      "rate of this epoch is set.");
  return type;
}

/// The state that Checkpointer does not know: groups but the first, and draws that round halo rows.
Checkpointer with_whole_state(const Checkpointer& checkpoints, PyOptimizer& optimizer) {
  Checkpointer all = checkpoints;
  all.add_state("halo.", {{}, {{"operations", &HaloStep::operations_of_thread()}}});
  for (std::size_t i = 1; i < optimizer.groups().size(); ++i) {
    Optimizer& other = *optimizer.group(i).optimizer;
    all.add_state("optimizer.", {other.named_buffers(), other.named_counters()});
  }
  return all;
}

/// Throws InputError if the seed is another one than when the Checkpointer was made.
void require_seed(const Checkpointer& self) {
  require<InputError>(self.seed() == generator()->seed(), "the seed was ", self.seed(),
                      " when the Checkpointer was made, and is now ", generator()->seed(),
                      ", expected sar.manual_seed() before it");
}

void save_checkpoint(const Checkpointer& self, int epoch, const Module& net, PyOptimizer& optimizer,
                     const LRScheduler* schedule, const std::map<std::string, std::string>& extra) {
  require_seed(self);
  std::map<std::string, std::string> texts = extra;
  for (std::size_t i = 1; i < optimizer.groups().size(); ++i)
    texts[concat("lr.", i)] = exact_text(optimizer.group(i).optimizer->lr());
  self.lock();
  const Checkpointer all = with_whole_state(self, optimizer);
  Optimizer& first = *optimizer.group(0).optimizer;
  if (schedule != nullptr)
    all.save(epoch, net, first, *schedule, texts);
  else
    all.save(epoch, net, first, texts);
}

CheckpointInfo load_checkpoint(const Checkpointer& self, const std::string& path, Module& net,
                               PyOptimizer& optimizer, LRScheduler* schedule) {
  require_seed(self);
  Optimizer& first = *optimizer.group(0).optimizer;
  const std::map<std::string, std::string> texts = self.info(path, first).extra;
  std::vector<double> rates, before;
  for (std::size_t i = 1; i < optimizer.groups().size(); ++i) {
    const auto found = texts.find(concat("lr.", i));
    const auto rate = found != texts.end() ? to_number<double>(found->second) : std::nullopt;
    require<InputError>(rate.has_value(), path, ": there is no rate of the group ", i,
                        " of parameters, expected a checkpoint of an optimizer of ",
                        optimizer.groups().size(), " groups");
    rates.push_back(*rate);
    before.push_back(optimizer.group(i).optimizer->lr());
  }
  const auto set = [&](const std::vector<double>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) optimizer.group(i + 1).optimizer->set_lr(all[i]);
  };
  const Checkpointer all = with_whole_state(self, optimizer);
  set(rates);  // ahead of the schedule, which may set others
  try {
    return schedule != nullptr ? all.load(path, net, first, *schedule) : all.load(path, net, first);
  } catch (...) {
    set(before);
    throw;
  }
}

std::optional<LinearLROptions> warm_up_of(Index epochs) {
  if (epochs == 0) return std::nullopt;
  return LinearLROptions{.total_iters = epochs};
}

}  // namespace

void bind_optimizers(Definitions& module) {
  using namespace nb::literals;
  nb::class_<PyOptimizer>(module, "Optimizer", "The base of SGD, Adam and AdamW.")
      .def(
          "step", [](PyOptimizer& self) { compute([&] { self.step(); }); },
          "Collective. Adds the gradients of all ranks and updates the parameters that have one.")
      .def(
          "zero_grad",
          [](PyOptimizer& self, bool set_to_none) {
            require_cleared(set_to_none);
            self.zero_grad();
          },
          "set_to_none"_a = true, "Local. Clears the gradients. set_to_none is torch's: False is refused.")
      .def(
          "gather_grads", [](PyOptimizer& self) { compute([&] { self.gather_grads(); }); },
          "Collective. Adds the gradients of all ranks now, to look at them before step().")
      .def(
          "clip_grad_norm",
          [](PyOptimizer& self, double most) { return compute([&] { return self.clip_norm(most); }); },
          "max_norm"_a,
          "Collective. torch.nn.utils.clip_grad_norm_ of the gradients of all ranks. Returns their norm.")
      .def(
          "clip_grad_value", [](PyOptimizer& self, double most) { compute([&] { self.clip_value(most); }); },
          "clip_value"_a, "Collective. torch.nn.utils.clip_grad_value_.")
      .def_prop_rw(
          "lr", [](PyOptimizer& self) { return self.group(0).optimizer->lr(); },
          [](PyOptimizer& self, double lr) {
            for (ParameterGroup& group : self.groups()) group.optimizer->set_lr(lr);
          },
          "The rate of the first group of parameters; setting it sets that of all groups.")
      .def(
          "add_param_group", [](PyOptimizer& self, nb::handle group) { self.add_group(group); },
          "param_group"_a,
          "Local; the same on all ranks. Adds {'params': ..., options}. Schedules that exist do not step it.")
      .def_prop_ro("_num_groups", [](PyOptimizer& self) { return self.groups().size(); })
      .def("_group_params",
           [](PyOptimizer& self, std::size_t i) {
             std::vector<PyTensor> all;
             for (const NamedParameter& named : without_repetitions(self.group(i).parameters))
               all.push_back({named.parameter});
             return all;
           })
      .def("_group_options", [](PyOptimizer& self, std::size_t i) { return self.group(i).options; })
      .def("_group_lr", [](PyOptimizer& self, std::size_t i) { return self.group(i).optimizer->lr(); })
      .def("_set_group_lr",
           [](PyOptimizer& self, std::size_t i, double lr) { self.group(i).optimizer->set_lr(lr); })
      .def("state_dict", &state_of,
           "Local. Moments, numbers of steps and the rate, by name of the parameter.")
      .def("load_state_dict", &load_state, "state"_a, "Local; the same on all ranks.")
      .def("__reduce__", [](nb::handle) -> nb::object {
        throw nb::type_error("an optimizer of sar cannot be pickled: save its state_dict()");
      });
  struct PySGD : PyOptimizer {
    using PyOptimizer::PyOptimizer;
  };
  struct PyAdam : PyOptimizer {
    using PyOptimizer::PyOptimizer;
  };
  struct PyAdamW : PyOptimizer {
    using PyOptimizer::PyOptimizer;
  };
  const auto decay = "decay_only"_a = std::vector<std::string>();
  nb::class_<PySGD, PyOptimizer>(module, "SGD", "torch.optim.SGD.")
      .def(
          "__init__",
          [](PySGD* self, nb::handle params, double lr, double momentum, double weight_decay,
             const std::vector<std::string>& decay_only, std::optional<Communicator> comm) {
            nb::dict defaults;
            defaults["lr"] = lr, defaults["momentum"] = momentum, defaults["weight_decay"] = weight_decay;
            defaults["decay_only"] = decay_only;
            new (self) PySGD(params, defaults, &make_sgd, comm);
          },
          "params"_a, "lr"_a = 1e-3, "momentum"_a = 0.0, "weight_decay"_a = 0.0, decay, "comm"_a = nb::none(),
          "Collective at the first use of a communicator. params: a module, its parameters() or "
          "named_parameters(), or a list of dicts of 'params' and options that differ from those given "
          "here.");
  const auto adam = [&](auto* kind, auto* python, const char* name, const char* doc) {
    using O = std::remove_pointer_t<decltype(kind)>;
    using P = std::remove_pointer_t<decltype(python)>;
    nb::class_<P, PyOptimizer>(module, name, doc)
        .def(
            "__init__",
            [](P* self, nb::handle params, double lr, std::pair<double, double> betas, double eps,
               double weight_decay, const std::vector<std::string>& decay_only,
               std::optional<Communicator> comm) {
              nb::dict defaults;
              defaults["lr"] = lr, defaults["betas"] = nb::make_tuple(betas.first, betas.second);
              defaults["eps"] = eps, defaults["weight_decay"] = weight_decay;
              defaults["decay_only"] = decay_only;
              new (self) P(params, defaults, &make_adam<O>, comm);
            },
            "params"_a, "lr"_a = 1e-3, "betas"_a = std::pair(0.9, 0.999), "eps"_a = 1e-8,
            "weight_decay"_a = 0.0, decay, "comm"_a = nb::none(),
            "Collective at the first use of a communicator. params: a module, its parameters() or "
            "named_parameters(), or a list of dicts of 'params' and options that differ from those given "
            "here.");
  };
  adam(static_cast<Adam*>(nullptr), static_cast<PyAdam*>(nullptr), "Adam", "torch.optim.Adam.");
  adam(static_cast<AdamW*>(nullptr), static_cast<PyAdamW*>(nullptr), "AdamW",
       "torch.optim.AdamW; the default of weight_decay is 0.");

  nb::class_<LRScheduler>(module, "LRScheduler", "The base of schedules of the learning rate.")
      .def("step", &LRScheduler::step, "metric"_a = std::numeric_limits<double>::quiet_NaN(),
           "Local. Ends an epoch.")
      .def("state_dict", &LRScheduler::state,
           "Local. The epoch and the base rate, or what else the schedule has.")
      .def("load_state_dict", &LRScheduler::load_state, "state"_a,
           "Local; the same on all ranks. Load the state of the optimizer first, which has the rate. Raises "
           "sar.InputError, and changes nothing, for a state that lacks a value.");
  schedule<StepLR>(module, "StepLR")
      .def(
          "__init__",
          [](PySchedule<StepLR>* self, PyOptimizer& optimizer, Index step_size, double gamma, Index warm_up) {
            new (self) PySchedule<StepLR>(
                optimizer,
                StepLROptions{.step_size = step_size, .gamma = gamma, .warm_up = warm_up_of(warm_up)});
          },
          "optimizer"_a, "step_size"_a, "gamma"_a = 0.1, "warm_up"_a = 0, nb::keep_alive<1, 2>());
  schedule<CosineAnnealingLR>(module, "CosineAnnealingLR")
      .def(
          "__init__",
          [](PySchedule<CosineAnnealingLR>* self, PyOptimizer& optimizer, Index T_max, double eta_min,
             Index warm_up) {
            new (self) PySchedule<CosineAnnealingLR>(
                optimizer,
                CosineAnnealingLROptions{.T_max = T_max, .eta_min = eta_min, .warm_up = warm_up_of(warm_up)});
          },
          "optimizer"_a, "T_max"_a, "eta_min"_a = 0.0, "warm_up"_a = 0, nb::keep_alive<1, 2>());
  schedule<LinearLR>(module, "LinearLR")
      .def(
          "__init__",
          [](PySchedule<LinearLR>* self, PyOptimizer& optimizer, double start_factor, double end_factor,
             Index total_iters) {
            new (self) PySchedule<LinearLR>(optimizer, LinearLROptions{.start_factor = start_factor,
                                                                       .end_factor = end_factor,
                                                                       .total_iters = total_iters});
          },
          "optimizer"_a, "start_factor"_a = 1.0 / 3, "end_factor"_a = 1.0, "total_iters"_a = 5,
          nb::keep_alive<1, 2>());
  schedule<ReduceLROnPlateau>(module, "ReduceLROnPlateau")
      .def(
          "__init__",
          [](PySchedule<ReduceLROnPlateau>* self, PyOptimizer& optimizer, const std::string& mode,
             double factor, Index patience, double min_lr) {
            static constexpr EnumName<ReduceLROnPlateauOptions::Mode> modes[] = {
                {ReduceLROnPlateauOptions::Mode::min, "min"}, {ReduceLROnPlateauOptions::Mode::max, "max"}};
            new (self) PySchedule<ReduceLROnPlateau>(
                optimizer, ReduceLROnPlateauOptions{.mode = choice(modes, mode, "mode"),
                                                    .factor = factor,
                                                    .patience = patience,
                                                    .min_lr = min_lr});
          },
          "optimizer"_a, "mode"_a = "min", "factor"_a = 0.1, "patience"_a = 10, "min_lr"_a = 0.0,
          nb::keep_alive<1, 2>());

  nb::class_<Checkpointer>(module, "_Checkpointer")
      .def(
          "__init__",
          [](Checkpointer* self, nb::handle directory, int keep_last, std::optional<Communicator> comm) {
            const Communicator& all = or_default(comm);
            const std::string path = path_of(directory);
            const CheckpointerOptions options{.keep_last = keep_last, .seed = generator()->seed()};
            compute([&] { new (self) Checkpointer(all, path, options); });
          },
          "directory"_a, "keep_last"_a, "comm"_a.none())
      .def(
          "save",
          [](const Checkpointer& self, int epoch, const Module& net, PyOptimizer& optimizer,
             const LRScheduler* schedule, const std::map<std::string, std::string>& extra) {
            compute([&] { save_checkpoint(self, epoch, net, optimizer, schedule, extra); });
          },
          "epoch"_a, "module"_a, "optimizer"_a, "schedule"_a.none(), "extra"_a)
      .def("info",
           [](const Checkpointer& self, const std::string& path, PyOptimizer& optimizer) {
             std::map<std::string, std::string> extra;
             compute([&] { extra = self.info(path, *optimizer.group(0).optimizer).extra; });
             return extra;
           })
      .def("latest", [](const Checkpointer& self) { return compute([&] { return self.latest(); }); })
      .def(
          "load",
          [](const Checkpointer& self, const std::string& path, Module& net, PyOptimizer& optimizer,
             LRScheduler* schedule) {
            CheckpointInfo info;
            compute([&] { info = load_checkpoint(self, path, net, optimizer, schedule); });
            return std::pair(info.epoch, info.extra);
          },
          "path"_a, "module"_a, "optimizer"_a, "schedule"_a.none());
}

}}}  // namespace sar
