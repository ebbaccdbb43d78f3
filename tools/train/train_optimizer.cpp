#include "train_optimizer.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <optional>

namespace sar::tools {

std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& o, const Module& model) {
  const AdamOptions adam{.lr = o.lr, .weight_decay = o.weight_decay};
  const SGDOptions sgd{.lr = o.lr, .momentum = o.momentum, .weight_decay = o.weight_decay};
  if (o.optimizer == OptimizerType::sgd) return std::make_unique<SGD>(model.named_parameters(), sgd);
  if (o.optimizer == OptimizerType::adamw) return std::make_unique<AdamW>(model.named_parameters(), adam);
  return std::make_unique<Adam>(model.named_parameters(), adam);
}

std::unique_ptr<LRScheduler> make_schedule(const TrainOptions& o, Optimizer& optimizer) {
  const ScheduleOptions& s = o.schedule;
  const LinearLROptions linear{.start_factor = 0.1, .total_iters = std::max(1, s.warm_up)};
  const auto warm_up = s.warm_up > 0 ? std::optional(linear) : std::nullopt;
  switch (s.type) {
    case ScheduleType::step:
      return std::make_unique<StepLR>(
          optimizer, StepLROptions{.step_size = s.step_size, .gamma = s.factor, .warm_up = warm_up});
    case ScheduleType::cosine:
      return std::make_unique<CosineAnnealingLR>(
          optimizer,
          CosineAnnealingLROptions{
              .T_max = std::max(1, o.epochs - s.warm_up), .eta_min = s.min_lr, .warm_up = warm_up});
    case ScheduleType::plateau:
      return std::make_unique<ReduceLROnPlateau>(
          optimizer,
          ReduceLROnPlateauOptions{.factor = s.factor, .patience = s.patience, .min_lr = s.min_lr});
    case ScheduleType::none:
      break;
  }
  return s.warm_up > 0 ? std::make_unique<LinearLR>(optimizer, linear) : nullptr;
}

}  // namespace sar::tools
