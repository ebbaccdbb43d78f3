// SPDX-License-Identifier: MIT

/// Which weights of a training are kept: WeightAverage, an exponential moving average, and BestEpoch.
#pragma once

#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// After step t = 1, 2, ... of the optimizer, for each parameter w:
///
///     w' = d w' + (1 - d) w,        d = min(decay, (t - 1) / (t + 9))
///
/// so that the first steps are forgotten soon. The averages often predict better than the weights of the last
/// step. All functions are local: parameters are the same on every rank.
///
/// @code
/// Linear net(64, 4, gen);
/// WeightAverage average(net, /*decay=*/0.999);
/// average.update();    // after each optimizer.step()
/// average.exchange();  // net has the averages, for an evaluation ...
/// average.exchange();  // ... and its weights again
/// @endcode
class WeightAverage {
 public:
  /// The model must outlive this. Throws InputError unless 0 <= decay < 1.
  WeightAverage(const Module& model, double decay);

  void update();
  /// Exchanges the model's parameters and their averages. Does nothing before the first update.
  void exchange();
  /// The averages and the number of steps, for Checkpointer::add_state().
  [[nodiscard]] StateDict state();

 private:
  std::vector<NamedParameter> parameters_;
  std::vector<Tensor> averages_;
  Recoverable<std::uint64_t> steps_ = std::uint64_t{0};
  double decay_;
};

// BestEpoch: which epoch had the best validation value, and the weights of that epoch.
//
//     BestEpoch best(net);                                   // a larger value is better
//     for (int epoch = 1; epoch <= 200; ++epoch) {
//       ...
//       best.update(epoch, validation_accuracy);
//       if (best.epochs_since(epoch) >= 20) break;           // early stopping
//     }
//     best.restore_weights();

struct BestEpochOptions {
  bool larger_is_better = true;
  bool keep_weights = true;  ///< a copy of the weights in memory
};

/// All functions are local: the value must be the same on all ranks, as those of metrics are.
///
/// @code
/// Linear net(64, 4, gen);
/// BestEpoch best(net);
/// best.update(/*epoch=*/1, /*value=*/0.7);
/// best.update(2, 0.6);
/// best.restore_weights();                  // those of epoch 1
/// @endcode
class BestEpoch {
 public:
  /// The model must outlive this. Modules that are registered later are not part of the weights.
  explicit BestEpoch(const Module& model, const BestEpochOptions& options = {});

  /// Returns whether the value is better than all values before, and copies the weights then. A NaN is never
  /// better.
  bool update(int epoch, double value);

  /// 0: there is none yet.
  [[nodiscard]] int epoch() const noexcept { return epoch_; }
  /// NaN: there is none yet.
  [[nodiscard]] double value() const noexcept { return value_; }
  [[nodiscard]] int epochs_since(int epoch) const noexcept { return epoch - epoch_; }

  /// Gives the model the weights of the best epoch: parameters, buffers and torch's counters. Without a best
  /// epoch the model stays as it is.
  void restore_weights();

  /// Continues as if the best epoch so far had been this one: in a resumed training, whose checkpoint has
  /// weights().
  void resume(int epoch, double value) {
    epoch_ = epoch;
    value_ = value;
  }
  /// The weights of the best epoch, for Checkpointer::add_state(); empty without keep_weights.
  [[nodiscard]] StateDict weights();

 private:
  StateDict model_;
  std::vector<Tensor> tensors_;  // copies of those of the model
  std::vector<Recoverable<std::uint64_t>> counters_;
  BestEpochOptions options_;
  Recoverable<int> epoch_ = 0;
  Recoverable<double> value_ = std::numeric_limits<double>::quiet_NaN();
};
}}  // namespace sar
