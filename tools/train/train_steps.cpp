// SPDX-License-Identifier: MIT
#include "train_steps.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

namespace sar::tools {

std::map<std::string, std::string> EpochProgress::to_checkpoint() const {
  if (batch == 0) return {};
  return {{"batch", nlohmann::json{{"number", batch}, {"seeds", seeds}, {"loss_sum", loss_sum}}.dump()}};
}

EpochProgress EpochProgress::from_checkpoint(const std::map<std::string, std::string>& extra,
                                             const std::string& place) {
  const auto batch = extra.find("batch");
  if (batch == extra.end()) return {};
  const auto values = nlohmann::json::parse(batch->second, nullptr, /*allow_exceptions=*/false);
  const auto number = [&]<class Number>(const char* key, Number least, Number most) {
    const double found = number_in(values, key);
    const bool is_whole = std::is_floating_point_v<Number> || found == std::trunc(found);
    require<InputError>(is_whole && found >= static_cast<double>(least) && found <= static_cast<double>(most),
                        place, ": extra.batch has no number '", key, "' of ", least, " to ", most,
                        ", expected a checkpoint that train has written");
    return static_cast<Number>(found);
  };
  constexpr Index most = Index{1} << 53;
  constexpr double most_loss = std::numeric_limits<double>::max();
  return {.batch = number("number", Index{1}, most),
          .seeds = number("seeds", Index{0}, most),
          .loss_sum = number("loss_sum", -most_loss, most_loss)};
}

void Steps::epoch(Optimizer& optimizer, Epoch& result, EpochTimer& timer, EpochProgress from,
                  FunctionRef<void(const EpochProgress&, Index num_batches)> step_done) {
  model().train();
  BatchSource& batches = *batches_;
  epoch_ = result.epoch;
  const auto number = static_cast<std::uint64_t>(result.epoch);
  const Index num_batches = batches.num_batches();
  const std::optional<Index> num_seeds = batches.num_seeds();
  require<InputError>(from.batch <= num_batches, "the checkpoint is of batch ", from.batch,
                      " of an epoch, and there are ", num_batches);
  require<InputError>(!num_seeds || from.seeds <= *num_seeds || from.batch == 0, "the checkpoint has ",
                      from.seeds, " seeds of an epoch, and there are ", num_seeds.value_or(0));
  from.of_batches = !num_seeds;
  const EpochProgress before = from;
  batches.start_epoch(number, from.batch);
  while (const BatchPtr batch = batches.next()) {
    const Index seeds = count(*batch, result);
    timer.step_begins();
    if (seeds > 0) {
      const HaloStep halo_step(o_.seed, (number << 32) + static_cast<std::uint64_t>(from.batch));
      const double loss = step(*batch, optimizer, timer);
      require(std::isfinite(loss), "the loss of epoch ", result.epoch, " is ", loss,
              ": try a smaller --lr than ", o_.lr);
      from.loss_sum += from.of_batches ? loss : loss * static_cast<double>(seeds);
      from.seeds += seeds;
    }
    ++from.batch;
    step_done(from, num_batches);
  }
  timer.steps_done();
  result.loss = from.mean_loss();
  if (!o_.sample.has_batches() && !has_samples(o_.task.type)) return;
  result.seeds = from.seeds - before.seeds;
  result.batches = num_batches - before.batch;
}

/// Returns the seeds of all ranks, or 1 for all training rows; 0: there are none that count, such as in
/// clusters without training nodes, or with classes of weight 0. Collective.
Index Steps::count(const Batch& batch, Epoch& result) const {
  if (!batch.seeds) return 1;
  std::array<double, 3> of_ranks{static_cast<double>(*batch.seeds), static_cast<double>(batch.halo_rows),
                                 counts(batch) ? 1.0 : 0.0};
  comm_.all_reduce(std::span<double>(of_ranks));
  result.input_rows += batch.input_rows;
  result.halo_rows += static_cast<Index>(of_ranks[1]);
  return of_ranks[2] == 0 ? 0 : static_cast<Index>(of_ranks[0]);
}

Variable Steps::apply(LayerStack& network, const Batch& batch) const {
  if (batch.is_whole_graph()) return network(graph_, input_.all(), g_.relations);
  const MessageFlowGraph& first = batch.blocks.front();
  const Variable x = batch.input.defined() ? Variable(batch.input) : input_.of(first.src_rows());
  if (batch.blocks.size() == 1) return network(static_cast<const Graph&>(first), x, batch.relations);
  return network(batch.blocks, x, batch.relations);
}

bool Steps::keeps_first_sums() const {
  return !o_.sample.has_batches() && (!o_.mfg || o_.eval_every == 0) && !input_.has_learnable_rows() &&
         !input_.has_parameters() && !input_.is_sparse();
}

double Steps::add_gradients(const Batch& batch, EpochTimer& timer) {
  Tape tape;
  const Variable of_step = loss(batch);
  timer.forward_done();
  tape.backward(of_step);
  return static_cast<double>(of_step.value().item());
}

double Steps::step(const Batch& batch, Optimizer& optimizer, EpochTimer& timer) {
  const double of_step = add_gradients(batch, timer);
  gather_grads(comm_, model());
  if (o_.clip_norm > 0) clip_grad_norm(model(), o_.clip_norm);
  optimizer.step();
  optimizer.zero_grad();
  if (average_ != nullptr) average_->update();
  input_.step(optimizer.lr());
  timer.backward_done();
  return of_step;
}

std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& o, Steps& steps) {
  const Module& model = steps.model();
  const std::map<std::string, double> factors = steps.lr_factors();
  const AdamOptions adam{.lr = o.lr, .weight_decay = o.weight_decay, .lr_factors = factors};
  const SGDOptions sgd{
      .lr = o.lr, .momentum = o.momentum, .weight_decay = o.weight_decay, .lr_factors = factors};
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
