// SPDX-License-Identifier: MIT

/// WeightAverage: an exponential moving average of a model's weights.
#pragma once

#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <cstdint>
#include <string>
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

}}  // namespace sar
