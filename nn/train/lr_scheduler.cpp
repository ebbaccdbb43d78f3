// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/text.hpp>
#include <sar/nn/train/lr_scheduler.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sar { inline namespace SAR_PRECISION {
namespace {

using State = std::map<std::string, std::string>;

template <class Number>
Number number_of(const State& state, const std::string& key) {
  const auto found = state.find(key);
  require<InputError>(found != state.end(), "the state of the schedule has no '", key, "'");
  const auto number = to_number<Number>(found->second);
  require<InputError>(number.has_value(), "the state of the schedule has '", key, "' of '", found->second,
                      "', expected a number");
  return *number;
}

void require_rate(double lr) {
  require<InputError>(lr >= 0 && std::isfinite(lr), "the base learning rate is ", lr,
                      ", expected a finite number of 0 or more");
}

void check(const LinearLROptions& o) {
  require<InputError>(o.start_factor > 0 && o.end_factor >= 0 && o.total_iters >= 1,
                      "LinearLR from the factor ", o.start_factor, " to ", o.end_factor, " over ",
                      o.total_iters,
                      " epochs, expected a positive one, one of 0 or more, and 1 epoch or more");
}

double linear(const LinearLROptions& o, double epoch) {
  const auto total = static_cast<double>(o.total_iters);
  return o.start_factor + (o.end_factor - o.start_factor) * std::min(epoch, total) / total;
}

}  // namespace

EpochLR::EpochLR(Optimizer& optimizer, const std::optional<LinearLROptions>& warm_up)
    : LRScheduler(optimizer), warm_up_(warm_up), base_(optimizer.lr()) {
  if (warm_up_) check(*warm_up_);
}

void EpochLR::apply() {
  const auto epoch = static_cast<double>(epoch_.get());
  const double warm = warm_up_ ? static_cast<double>(warm_up_->total_iters) : 0;
  optimizer().set_lr(epoch < warm ? base_ * linear(*warm_up_, epoch) : rate(base_, epoch - warm));
}

void EpochLR::step(double /*metric*/) {
  const Transaction transaction;  // of a rate that is refused
  ++epoch_.change();
  apply();
}

void EpochLR::set_base_lr(double lr) {
  require_rate(lr);
  const Transaction transaction;
  base_ = lr;
  apply();
}

State EpochLR::state() const {
  return {{"base_lr", exact_text(base_.get())}, {"epoch", exact_text(epoch_.get())}};
}

void EpochLR::load_state(const State& state) {
  const auto base = number_of<double>(state, "base_lr");
  const auto epoch = number_of<std::uint64_t>(state, "epoch");
  require_rate(base);
  const Transaction transaction;
  base_ = base;
  epoch_ = epoch;
  apply();
}

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options)
    : EpochLR(optimizer, options.warm_up), options_(options) {
  require<InputError>(options.step_size >= 1 && options.gamma >= 0, "StepLR with a step_size of ",
                      options.step_size, " and a gamma of ", options.gamma,
                      ", expected 1 or more, and 0 or more");
  apply();
}

double StepLR::rate(double base, double epoch) const {
  return base * std::pow(options_.gamma, std::floor(epoch / static_cast<double>(options_.step_size)));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options)
    : EpochLR(optimizer, options.warm_up), options_(options) {
  require<InputError>(options.T_max >= 1 && options.eta_min >= 0, "CosineAnnealingLR with a T_max of ",
                      options.T_max, " and an eta_min of ", options.eta_min,
                      ", expected 1 or more, and 0 or more");
  apply();
}

double CosineAnnealingLR::rate(double base, double epoch) const {
  const double turn = std::numbers::pi * epoch / static_cast<double>(options_.T_max);
  return options_.eta_min + (base - options_.eta_min) * (1 + std::cos(turn)) / 2;
}

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& options)
    : EpochLR(optimizer, {}), options_(options) {
  check(options);
  apply();
}

double LinearLR::rate(double base, double epoch) const {
  return base * linear(options_, epoch);
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options)
    : LRScheduler(optimizer),
      options_(options),
      best_(options.mode == ReduceLROnPlateauOptions::Mode::min ? std::numeric_limits<double>::infinity()
                                                                : -std::numeric_limits<double>::infinity()) {
  const auto& o = options_;
  require<InputError>(o.factor >= 0 && o.factor < 1, "ReduceLROnPlateau with a factor of ", o.factor,
                      ", expected 0 or more, and less than 1");
  require<InputError>(o.patience >= 0 && o.cooldown >= 0 && o.threshold >= 0 && o.min_lr >= 0 && o.eps >= 0,
                      "ReduceLROnPlateau with a patience of ", o.patience, ", a cooldown of ", o.cooldown,
                      ", a threshold of ", o.threshold, ", a min_lr of ", o.min_lr, " and an eps of ", o.eps,
                      ", expected 0 or more");
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const bool relative = options_.threshold_mode == ReduceLROnPlateauOptions::Threshold::rel;
  if (options_.mode == ReduceLROnPlateauOptions::Mode::min)
    return metric < (relative ? best_ * (1 - options_.threshold) : best_ - options_.threshold);
  return metric > (relative ? best_ * (1 + options_.threshold) : best_ + options_.threshold);
}

void ReduceLROnPlateau::step(double metric) {
  require<InputError>(
      !std::isnan(metric),
      "ReduceLROnPlateau: the metric of the epoch is NaN, expected a number, such as the loss");
  if (is_better(metric)) {
    best_ = metric;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_.change();
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_.change();
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ <= options_.patience) return;
  const double lr = optimizer().lr();
  const double reduced = std::max(lr * options_.factor, options_.min_lr);
  if (lr - reduced > options_.eps) optimizer().set_lr(reduced);
  cooldown_counter_ = options_.cooldown;
  num_bad_epochs_ = 0;
}

void ReduceLROnPlateau::set_base_lr(double lr) {
  require_rate(lr);
  optimizer().set_lr(lr);
}

State ReduceLROnPlateau::state() const {
  return {{"best", exact_text(best_.get())},
          {"num_bad_epochs", exact_text(num_bad_epochs_.get())},
          {"cooldown_counter", exact_text(cooldown_counter_.get())}};
}

void ReduceLROnPlateau::load_state(const State& state) {
  const auto best = number_of<double>(state, "best");
  const auto bad_epochs = number_of<std::int64_t>(state, "num_bad_epochs");
  const auto counter = number_of<std::int64_t>(state, "cooldown_counter");
  require<InputError>(!std::isnan(best) && bad_epochs >= 0 && counter >= 0,
                      "the state of the schedule has a 'best' of ", best, ", a 'num_bad_epochs' of ",
                      bad_epochs, " and a 'cooldown_counter' of ", counter,
                      ", expected numbers, the counts of 0 or more");
  best_ = best;
  num_bad_epochs_ = bad_epochs;
  cooldown_counter_ = counter;
}

}}  // namespace sar
