/// The optimizer of `train` and the schedule of its learning rate.
#pragma once

#include "train_options.hpp"

#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/lr_scheduler.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <memory>

namespace sar::tools {

std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& o, const Module& model);

/// Returns the schedule; null if the learning rate is constant.
std::unique_ptr<LRScheduler> make_schedule(const TrainOptions& o, Optimizer& optimizer);

}  // namespace sar::tools
