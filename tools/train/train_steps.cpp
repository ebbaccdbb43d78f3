// SPDX-License-Identifier: MIT
#include "train_steps.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace sar::tools {

namespace {

/// Of each layer, for each type of edge.
std::vector<std::vector<Index>> fan_outs_of_types(const SampleOptions& s,
                                                  std::span<const EdgeType> edge_types) {
  std::vector<std::vector<Index>> fan_outs;
  for (const Index fan_out : s.fan_outs) fan_outs.emplace_back(edge_types.size(), fan_out);
  for (const auto& [name, of_layers] : s.of_relations) {
    std::size_t type = 0;
    try {
      type = find_edge_type(edge_types, name);
    } catch (const InputError& error) {
      throw InputError(concat("--sample-relation: ", error.what()));
    }
    for (std::size_t l = 0; l < fan_outs.size(); ++l) fan_outs[l][type] = of_layers[l];
  }
  return fan_outs;
}

}  // namespace

NeighborSampler make_sampler(const Graph& graph, std::span<const GraphRelations> relations,
                             std::span<const EdgeType> edge_types, const TrainOptions& o,
                             std::uint64_t seed) {
  const SampleOptions& s = o.sample;
  NeighborSamplerOptions options{
      .method = s.method, .replace = s.replace, .prob = {}, .redraw = s.redraw, .seed = seed};
  if (s.by_weight) {
    require<InputError>(graph.edge_weight().defined(), "--sample-by-weight: the edges have no weights");
    options.prob = graph.edge_weight();
  }
  if (edge_types.empty()) return {graph, s.fan_outs, options};
  return {graph, fan_outs_of_types(s, edge_types), relations.front().types, options};
}

void require_batches(const Communicator& comm, const TrainOptions& o, Index num_batches, Index seeds_of_rank,
                     const char* seeds) {
  const Index all_seeds = comm.all_reduce(seeds_of_rank);
  require<InputError>(num_batches > 0, "--drop-last leaves no batch: there are ", all_seeds, " ", seeds,
                      " on ", comm.size(), " ranks, and the batch size is ", o.sample.batch_size,
                      o.sample.batch_per_rank ? " of each rank" : "");
}

Variable loss_of_labels(const Communicator& comm, const TaskOptions& o, std::span<const double> class_weights,
                        const Variable& scores, std::span<const std::int64_t> labels, const Tensor& targets,
                        std::span<const std::uint8_t> mask, const RowWeights& row_weights) {
  switch (o.label_loss) {
    case LabelLoss::bce:
      return bce_with_logits(scores, targets, mask, comm, row_weights);
    case LabelLoss::mse:
      return mse(scores, targets, mask, comm, row_weights);
    case LabelLoss::mae:
      return l1(scores, targets, mask, comm, row_weights);
    case LabelLoss::automatic:
    case LabelLoss::cross_entropy:
      break;
  }
  return cross_entropy(
      scores, labels, mask, comm,
      CrossEntropyOptions{
          .class_weights = class_weights, .label_smoothing = o.label_smoothing, .row_weights = row_weights});
}

BlockData::BlockData(std::vector<MessageFlowGraph> graphs, std::span<const GraphRelations> of_graph)
    : blocks(std::move(graphs)) {
  for (const GraphRelations& all : of_graph)
    for (const MessageFlowGraph& block : blocks) relations.push_back(relations_of(block, all));
}

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
    const auto value = values.is_object() && values.contains(key) ? values[key] : nlohmann::json();
    const bool has_type = std::is_integral_v<Number> ? value.is_number_integer() : value.is_number();
    const double found = has_type ? value.template get<double>() : std::numeric_limits<double>::quiet_NaN();
    require<InputError>(found >= static_cast<double>(least) && found <= static_cast<double>(most), place,
                        ": extra.batch has no number '", key, "' of ", least, " to ", most,
                        ", expected a checkpoint that train has written");
    return value.template get<Number>();
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
  const auto number = static_cast<std::uint64_t>(result.epoch);
  const auto check = [&](double loss) {
    require(std::isfinite(loss), "the loss of epoch ", result.epoch, " is ", loss,
            ": try a smaller --lr than ", o_.lr);
  };
  require<InputError>(from.batch <= num_batches(), "the checkpoint is of batch ", from.batch,
                      " of an epoch, and there are ", num_batches());
  require<InputError>(from.seeds <= num_seeds() || from.batch == 0, "the checkpoint has ", from.seeds,
                      " seeds of an epoch, and there are ", num_seeds());
  start_epoch(number, from.batch);
  if (num_batches() == 0) {
    const HaloStep halo_step(o_.seed, number << 32);
    result.loss = step(optimizer, timer);
    check(result.loss);
    return;
  }
  const bool estimates = o_.sample.saint.has_value();  // each batch the loss of all training nodes
  const Index before = from.batch;
  Index seeds_done = 0;
  while (const std::optional<Index> mine = next_batch()) {
    std::array<double, 3> of_ranks{static_cast<double>(*mine), static_cast<double>(batch_halo_rows_),
                                   counts_ ? 1.0 : 0.0};
    comm_.all_reduce(std::span<double>(of_ranks));
    const double seeds = of_ranks[0];
    timer.step_begins();
    result.input_rows += batch_rows_;
    result.halo_rows += static_cast<Index>(of_ranks[1]);
    if (seeds == 0 || of_ranks[2] == 0) {  // clusters without training nodes; classes of weight 0
      ++from.batch;
      step_done(from, num_batches());
      continue;
    }
    const HaloStep halo_step(o_.seed, (number << 32) + static_cast<std::uint64_t>(from.batch));
    const double loss = step(optimizer, timer);
    check(loss);
    from.loss_sum += estimates ? loss : loss * seeds;
    from.seeds += static_cast<Index>(seeds);
    seeds_done += static_cast<Index>(seeds);
    ++from.batch;
    step_done(from, num_batches());
  }
  timer.steps_done();
  result.loss = from.mean_loss(estimates);
  if (!o_.sample.has_batches() && !has_samples(o_.task.type)) return;
  result.seeds = seeds_done;
  result.batches = num_batches() - before;
}

void Steps::count_rows(const MessageFlowGraph& block) {
  batch_rows_ = block.num_global_src_nodes();
  batch_halo_rows_ = block.num_halo_rows();
}

std::vector<Scores> Steps::scores_of_labels(const Tensor& predicted) const {
  const Labels labels{.type = data_.label_type, .classes = data_.labels, .targets = data_.targets};
  std::vector<Scores> scores;
  for (const Metric metric : metrics_of(o_.task)) {
    const auto on = [&](const auto& mask) { return value_of(metric, predicted, labels, mask, comm_); };
    scores.push_back({.train = on(data_.train_mask), .val = on(data_.val_mask), .test = on(data_.test_mask)});
  }
  return scores;
}

double Steps::add_gradients(EpochTimer& timer) {
  Tape tape;
  const Variable of_step = loss();
  timer.forward_done();
  tape.backward(of_step);
  return static_cast<double>(of_step.value().item());
}

double Steps::step(Optimizer& optimizer, EpochTimer& timer) {
  const double of_step = add_gradients(timer);
  gather_grads(comm_, model());
  if (o_.clip_norm > 0) clip_grad_norm(model(), o_.clip_norm);
  optimizer.step();
  optimizer.zero_grad();
  if (average_ != nullptr) average_->update();
  input_.step(optimizer.lr());
  timer.backward_done();
  return of_step;
}

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
