// SPDX-License-Identifier: MIT

// Compares one number an epoch. Memory: a copy of the model's weights; a copy for each better epoch.
#include <sar/nn/train/best_epoch.hpp>

#include <cmath>

namespace sar { inline namespace SAR_PRECISION {

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
  for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].copy_from(model_.tensors[i].tensor);
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
