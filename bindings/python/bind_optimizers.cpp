// SPDX-License-Identifier: MIT
#include <sar/bindings/python/module.hpp>
#include <sar/bindings/python/module_tree.hpp>
#include <sar/nn/train/clip_grad.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/lr_scheduler.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <deque>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

/// The parameters of an optimizer as one module, whose gradients are gathered and clipped together.
class Parameters : public Module {
 public:
  explicit Parameters(const std::vector<NamedParameter>& all) {
    for (const NamedParameter& named : all)
      register_parameter(std::to_string(own_.size()), own_.emplace_back(named.parameter));
  }

 private:
  std::deque<Variable> own_;
};

std::vector<NamedParameter> parameters_of(nb::handle given) {
  if (nb::isinstance<Module>(given)) return nb::cast<const Module&>(given).named_parameters();
  std::vector<NamedParameter> all;
  for (const nb::handle each : given) {
    NamedParameter named{std::to_string(all.size()), {}};
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

/// An optimizer whose step adds the gradients of all ranks first.
class PyOptimizer : NonCopyable {
 public:
  template <class O, class Options>
  static void make(PyOptimizer* self, nb::handle parameters, const Options& options,
                   const std::optional<Communicator>& comm, O*) {
    const std::vector<NamedParameter> all = parameters_of(parameters);
    auto optimizer = std::make_unique<O>(all, options);
    new (self) PyOptimizer(all, std::move(optimizer), or_default(comm));
  }
  PyOptimizer(const std::vector<NamedParameter>& all, std::unique_ptr<Optimizer> optimizer,
              const Communicator& comm)
      : parameters_(all), optimizer_(std::move(optimizer)), comm_(comm) {}

  void gather_grads() { sar::gather_grads(comm_, parameters_); }
  void step() {
    gather_grads();
    optimizer_->step();
  }
  void zero_grad() { optimizer_->zero_grad(); }
  double clip_norm(double most) { return gather_grads(), clip_grad_norm(parameters_, most); }
  void clip_value(double most) { gather_grads(), clip_grad_value(parameters_, most); }
  Optimizer& get() noexcept { return *optimizer_; }

 private:
  Parameters parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  Communicator comm_;
};

AdamOptions adam_options(double lr, const std::pair<double, double>& betas, double eps, double weight_decay,
                         const std::vector<std::string>& decay_only) {
  return {.lr = lr,
          .beta1 = betas.first,
          .beta2 = betas.second,
          .eps = eps,
          .weight_decay = weight_decay,
          .decay_only = decay_only};
}

nb::dict state_of(PyOptimizer& self) {
  nb::dict state;
  for (const NamedBuffer& named : self.get().named_buffers())
    state[named.name.c_str()] = PyTensor{Variable(named.tensor)};
  for (const NamedCounter& named : self.get().named_counters())
    state[named.name.c_str()] = named.value->get();
  state["lr"] = self.get().lr();
  return state;
}

void load_state(PyOptimizer& self, const nb::dict& state) {
  const auto value = [&](const std::string& name) {
    require<InputError>(state.contains(name.c_str()), "the state has no '", name,
                        "', which the optimizer has");
    return nb::object(state[name.c_str()]);
  };
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const NamedBuffer& named : self.get().named_buffers()) {
    copies.emplace_back(named.tensor, tensor_of(value(named.name)));
    require<ShapeError>(copies.back().second.shape() == named.tensor.shape(), "'", named.name, "' has shape ",
                        copies.back().second.shape(), " in the state, expected ", named.tensor.shape());
  }
  std::vector<std::uint64_t> counts;
  for (const NamedCounter& named : self.get().named_counters())
    counts.push_back(nb::cast<std::uint64_t>(value(named.name)));
  const double lr = nb::cast<double>(value("lr"));
  for (auto& [to, from] : copies) to.copy_from(from);
  std::size_t i = 0;
  for (const NamedCounter& named : self.get().named_counters()) *named.value = counts[i++];
  self.get().set_lr(lr);
}

std::optional<LinearLROptions> warm_up_of(Index epochs) {
  if (epochs == 0) return std::nullopt;
  return LinearLROptions{.total_iters = epochs};
}

}  // namespace

void bind_optimizers(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<PyOptimizer>(module, "Optimizer", "The base of SGD, Adam and AdamW.")
      .def(
          "step", [](PyOptimizer& self) { compute([&] { self.step(); }); },
          "Collective. Adds the gradients of all ranks and updates the parameters that have one.")
      .def("zero_grad", &PyOptimizer::zero_grad, "Local. Clears the gradients.")
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
          "lr", [](PyOptimizer& self) { return self.get().lr(); },
          [](PyOptimizer& self, double lr) { self.get().set_lr(lr); })
      .def("state_dict", &state_of,
           "Local. Moments, numbers of steps and the rate, by name of the parameter.")
      .def("load_state_dict", &load_state, "state"_a, "Local; the same on all ranks.")
      .def("__reduce__", [](nb::handle) -> nb::object {
        throw nb::type_error("an optimizer of sar cannot be pickled: save its state_dict()");
      });
  struct PySGD : PyOptimizer {};
  struct PyAdam : PyOptimizer {};
  struct PyAdamW : PyOptimizer {};
  const auto decay = "decay_only"_a = std::vector<std::string>();
  nb::class_<PySGD, PyOptimizer>(module, "SGD", "torch.optim.SGD.")
      .def(
          "__init__",
          [](PySGD* self, nb::handle params, double lr, double momentum, double weight_decay,
             const std::vector<std::string>& decay_only, std::optional<Communicator> comm) {
            PyOptimizer::make(
                self, params,
                SGDOptions{
                    .lr = lr, .momentum = momentum, .weight_decay = weight_decay, .decay_only = decay_only},
                comm, static_cast<SGD*>(nullptr));
          },
          "params"_a, "lr"_a = 1e-3, "momentum"_a = 0.0, "weight_decay"_a = 0.0, decay, "comm"_a = nb::none(),
          "Collective at the first use of a communicator. params: a module, its parameters() or "
          "named_parameters().");
  const auto adam = [&](auto* kind, auto* python, const char* name, const char* doc) {
    using O = std::remove_pointer_t<decltype(kind)>;
    using P = std::remove_pointer_t<decltype(python)>;
    nb::class_<P, PyOptimizer>(module, name, doc)
        .def(
            "__init__",
            [](P* self, nb::handle params, double lr, std::pair<double, double> betas, double eps,
               double weight_decay, const std::vector<std::string>& decay_only,
               std::optional<Communicator> comm) {
              PyOptimizer::make(self, params, adam_options(lr, betas, eps, weight_decay, decay_only), comm,
                                static_cast<O*>(nullptr));
            },
            "params"_a, "lr"_a = 1e-3, "betas"_a = std::pair(0.9, 0.999), "eps"_a = 1e-8,
            "weight_decay"_a = 0.0, decay, "comm"_a = nb::none(),
            "Collective at the first use of a communicator. params: a module, its parameters() or "
            "named_parameters().");
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
  nb::class_<StepLR, LRScheduler>(module, "StepLR")
      .def(
          "__init__",
          [](StepLR* self, PyOptimizer& optimizer, Index step_size, double gamma, Index warm_up) {
            new (self) StepLR(optimizer.get(),
                              {.step_size = step_size, .gamma = gamma, .warm_up = warm_up_of(warm_up)});
          },
          "optimizer"_a, "step_size"_a, "gamma"_a = 0.1, "warm_up"_a = 0, nb::keep_alive<1, 2>());
  nb::class_<CosineAnnealingLR, LRScheduler>(module, "CosineAnnealingLR")
      .def(
          "__init__",
          [](CosineAnnealingLR* self, PyOptimizer& optimizer, Index T_max, double eta_min, Index warm_up) {
            new (self) CosineAnnealingLR(
                optimizer.get(), {.T_max = T_max, .eta_min = eta_min, .warm_up = warm_up_of(warm_up)});
          },
          "optimizer"_a, "T_max"_a, "eta_min"_a = 0.0, "warm_up"_a = 0, nb::keep_alive<1, 2>());
  nb::class_<LinearLR, LRScheduler>(module, "LinearLR")
      .def(
          "__init__",
          [](LinearLR* self, PyOptimizer& optimizer, double start_factor, double end_factor,
             Index total_iters) {
            new (self) LinearLR(
                optimizer.get(),
                {.start_factor = start_factor, .end_factor = end_factor, .total_iters = total_iters});
          },
          "optimizer"_a, "start_factor"_a = 1.0 / 3, "end_factor"_a = 1.0, "total_iters"_a = 5,
          nb::keep_alive<1, 2>());
  nb::class_<ReduceLROnPlateau, LRScheduler>(module, "ReduceLROnPlateau")
      .def(
          "__init__",
          [](ReduceLROnPlateau* self, PyOptimizer& optimizer, const std::string& mode, double factor,
             Index patience, double min_lr) {
            static constexpr EnumName<ReduceLROnPlateauOptions::Mode> modes[] = {
                {ReduceLROnPlateauOptions::Mode::min, "min"}, {ReduceLROnPlateauOptions::Mode::max, "max"}};
            new (self) ReduceLROnPlateau(optimizer.get(), {.mode = choice(modes, mode, "mode"),
                                                           .factor = factor,
                                                           .patience = patience,
                                                           .min_lr = min_lr});
          },
          "optimizer"_a, "mode"_a = "min", "factor"_a = 0.1, "patience"_a = 10, "min_lr"_a = 0.0,
          nb::keep_alive<1, 2>());
}

}}}  // namespace sar
