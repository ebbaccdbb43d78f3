// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/rows/optimizer_step.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/nn/train/optimizer.hpp>
#include <sar/nn/train/optimizer_option.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

bool covers(const std::string& selected, const std::string& parameter) {
  return parameter == selected || parameter.starts_with(selected + ".");
}

}  // namespace

Optimizer::Optimizer(std::vector<NamedParameter> parameters, double lr, double weight_decay,
                     const std::vector<std::string>& decay_only,
                     const std::map<std::string, double>& lr_factors, std::vector<std::string> state_names)
    : state_names_(std::move(state_names)), lr_(lr) {
  require_not_negative(lr, "lr");
  require_not_negative(weight_decay, "weight_decay");
  const auto require_parameter = [&](const std::string& selected, const char* what) {
    require<InputError>(
        std::ranges::any_of(parameters, [&](const auto& named) { return covers(selected, named.name); }),
        what, " is asked for '", selected, "', but there is no such parameter");
  };
  for (const std::string& selected : decay_only) require_parameter(selected, "weight decay");
  for (const auto& [selected, factor] : lr_factors) {
    require_parameter(selected, "a factor of the learning rate");
    require<InputError>(factor >= 0 && std::isfinite(factor), "the factor of the learning rate of '",
                        selected, "' is ", factor, ", expected a number of 0 or more");
  }
  const std::vector<NamedParameter> all = parameters;
  for (const NamedParameter& named : without_repetitions(std::move(parameters))) {
    const std::string& name = named.name;
    const Variable& parameter = named.parameter;
    require<InputError>(!parameter.value().read_only(), "the parameter '", name,
                        "' is in memory that was borrowed for reading, expected memory that can be written");
    const auto is_covered = [&](const std::string& selected) {
      return std::ranges::any_of(all, [&](const NamedParameter& each) {
        return each.parameter.gradient() == parameter.gradient() && covers(selected, each.name);
      });
    };
    const bool decays = decay_only.empty() || std::ranges::any_of(decay_only, is_covered);
    Slot slot{.name = name,
              .parameter = parameter,
              .weight_decay = decays ? weight_decay : 0,
              .steps = {},
              .state = {}};
    std::size_t longest = 0;
    for (const auto& [selected, factor] : lr_factors)
      if (selected.size() > longest && is_covered(selected)) {
        longest = selected.size();
        slot.lr_factor = factor;
      }
    for (std::size_t k = 0; k < state_names_.size(); ++k)
      slot.state.push_back(Tensor::zeros(parameter.shape()));
    slots_.push_back(std::move(slot));
  }
}

void Optimizer::step() {
  const TraceScope scope("optimizer", TraceKind::compute);
  for (Slot& slot : slots_) {
    const Tensor gradient = slot.parameter.grad();
    if (!gradient.defined()) continue;
    ++slot.steps.change();
    slot.parameter.value().save();
    for (const Tensor& tensor : slot.state) tensor.save();
    update(slot, gradient);
  }
}

void Optimizer::zero_grad() {
  for (Slot& slot : slots_) slot.parameter.zero_grad();
}

std::vector<NamedBuffer> Optimizer::named_buffers() const {
  std::vector<NamedBuffer> found;
  for (const Slot& slot : slots_)
    for (std::size_t k = 0; k < state_names_.size(); ++k)
      found.push_back({slot.name + "." + state_names_[k], slot.state[k]});
  return found;
}

std::vector<NamedCounter> Optimizer::named_counters() {
  std::vector<NamedCounter> found;
  for (Slot& slot : slots_) found.push_back({slot.name + ".step", &slot.steps});
  return found;
}

SGD::SGD(std::vector<NamedParameter> parameters, const SGDOptions& options)
    : Optimizer(
          std::move(parameters), options.lr, options.weight_decay, options.decay_only, options.lr_factors,
          options.momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{}),
      momentum_(options.momentum) {
  require_not_negative(options.momentum, "momentum");
}

void SGD::update(Slot& slot, const Tensor& gradient) {
  Tensor buffer = slot.state.empty() ? Tensor() : slot.state[0];
  sgd_step(slot.parameter.value(), gradient, buffer, static_cast<real>(lr_of(slot)),
           static_cast<real>(momentum_), static_cast<real>(slot.weight_decay));
}

Adam::Adam(std::vector<NamedParameter> parameters, const AdamOptions& options)
    : Adam(std::move(parameters), options, Decay::gradient) {}

Adam::Adam(std::vector<NamedParameter> parameters, const AdamOptions& options, Decay decay)
    : Optimizer(std::move(parameters), options.lr, options.weight_decay, options.decay_only,
                options.lr_factors, {"exp_avg", "exp_avg_sq"}),
      beta1_(options.beta1),
      beta2_(options.beta2),
      eps_(options.eps),
      decay_(decay) {
  require_not_negative(options.eps, "eps");
  require<InputError>(beta1_ >= 0 && beta1_ < 1 && beta2_ >= 0 && beta2_ < 1,
                      "the optimizer options beta1 and beta2 are ", beta1_, " and ", beta2_,
                      ", expected values from 0 to below 1");
}

void Adam::update(Slot& slot, const Tensor& gradient) {
  const double t = static_cast<double>(slot.steps.get());
  const AdamCoefficients c{
      .beta1 = static_cast<real>(beta1_),
      .rest1 = static_cast<real>(1 - beta1_),
      .beta2 = static_cast<real>(beta2_),
      .rest2 = static_cast<real>(1 - beta2_),
      .eps = static_cast<real>(eps_),
      .rate = static_cast<real>(lr_of(slot) / (1 - std::pow(beta1_, t))),
      .root_of_correction = static_cast<real>(std::sqrt(1 - std::pow(beta2_, t))),
      .decay = static_cast<real>(decay_ == Decay::gradient ? slot.weight_decay : 0),
      .keep = static_cast<real>(decay_ == Decay::parameter ? 1 - lr_of(slot) * slot.weight_decay : 1)};
  adam_step(slot.parameter.value(), gradient, slot.state[0], slot.state[1], c);
}

}}  // namespace sar
