// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/train/weight_average.hpp>

#include <algorithm>
#include <cmath>

namespace sar { inline namespace SAR_PRECISION {

WeightAverage::WeightAverage(const Module& model, double decay)
    : parameters_(model.unique_parameters()), decay_(decay) {
  require<InputError>(decay >= 0 && decay < 1, "WeightAverage: the decay is ", decay,
                      ", expected at least 0 and less than 1");
  for (const NamedParameter& each : parameters_) averages_.push_back(each.parameter.value().clone());
}

void WeightAverage::update() {
  const auto t = static_cast<double>(++steps_.change());
  const auto rest = static_cast<real>(1 - std::min(decay_, (t - 1) / (t + 9)));
  constexpr Index elements_per_task = Index{1} << 14;
  for (std::size_t k = 0; k < averages_.size(); ++k) {
    averages_[k].save();
    real* const average = averages_[k].data();
    const real* const weight = parameters_[k].parameter.value().data();
    parallel_for_each(averages_[k].size(), elements_per_task,
                      [=](Index i) { average[i] += rest * (weight[i] - average[i]); });
  }
}

void WeightAverage::exchange() {
  if (steps_ == 0) return;
  for (std::size_t k = 0; k < averages_.size(); ++k) {
    Tensor weights = parameters_[k].parameter.value();
    weights.save();
    averages_[k].save();
    std::ranges::swap_ranges(weights.values(), averages_[k].values());
  }
}

StateDict WeightAverage::state() {
  StateDict state;
  for (std::size_t k = 0; k < averages_.size(); ++k)
    state.tensors.push_back({parameters_[k].name, averages_[k]});
  state.counters.push_back({"steps", &steps_});
  return state;
}

// Compares one number an epoch. Memory: a copy of the model's weights; a copy for each better epoch.

BestEpoch::BestEpoch(const Module& model, const BestEpochOptions& options) : options_(options) {
  if (!options.keep_weights) return;
  model_ = state_dict(model);
  for (const NamedBuffer& named : model_.tensors) tensors_.push_back(named.tensor.clone());
  for (const NamedCounter& named : model_.counters) counters_.emplace_back(named.value->get());
}

bool BestEpoch::update(int epoch, double value) {
  const bool better = !std::isnan(value) &&
                      (std::isnan(value_) || (options_.larger_is_better ? value > value_ : value < value_));
  if (!better) return false;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].save();
    tensors_[i].copy_from(model_.tensors[i].tensor);
  }
  for (std::size_t i = 0; i < counters_.size(); ++i) counters_[i] = model_.counters[i].value->get();
  resume(epoch, value);
  return true;
}

void BestEpoch::restore_weights() {
  if (epoch_ == 0) return;
  for (const NamedBuffer& named : model_.tensors) named.tensor.save();
  for (std::size_t i = 0; i < tensors_.size(); ++i) model_.tensors[i].tensor.copy_from(tensors_[i]);
  for (std::size_t i = 0; i < counters_.size(); ++i) *model_.counters[i].value = counters_[i].get();
}

StateDict BestEpoch::weights() {
  StateDict state;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    state.tensors.push_back({model_.tensors[i].name, tensors_[i]});
  for (std::size_t i = 0; i < counters_.size(); ++i)
    state.counters.push_back({model_.counters[i].name, &counters_[i]});
  return state;
}
}}  // namespace sar
