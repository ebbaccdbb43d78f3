// SPDX-License-Identifier: MIT
#include "train/runs/train_run.hpp"

#include "program.hpp"
#include "train/atoms/potential_steps.hpp"
#include "train/runs/initial_network.hpp"
#include "train/train_checkpoint.hpp"
#include "train/train_curves.hpp"
#include "train/train_gcn_norm.hpp"
#include "train/train_log.hpp"
#include "train/train_predict.hpp"
#include "train/train_steps.hpp"

#include <sar/core/files/file.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace sar::tools {
namespace {

/// Loads the initial weights; rank 0 prints which names it recognized, and what they say about the graph.
/// Collective.
void load(const TrainingGraph& loaded, WeightFile& weights, Module& model, const TrainOptions& o,
          const ModelDescription& given) {
  const Communicator& comm = loaded.graph.comm();
  if (const std::string checkpoint = find_checkpoint(comm, o.init_weights); !checkpoint.empty()) {
    require<InputError>(!loaded.input->has_learnable_rows(), checkpoint,
                        ": is a checkpoint, expected the file of --save-weights, beside which there are the "
                        "learnable rows, or --resume");
    load_model_of_checkpoint(comm, checkpoint, model);
    compare_network(comm, checkpoint, true, model, o);
    say(comm, "initial weights: the model of ", checkpoint);
    return;
  }
  if (loaded.input->has_learnable_rows()) loaded.input->load_rows(o.init_weights);
  const std::vector<std::string> lines = weights.load(comm, o.init_weights, o.weight_names);
  for (const std::string& line : lines) say(comm, o.init_weights, ": ", line);
  compare_network(comm, o.init_weights, false, model, o);
  for (const std::string& line : graph_notes(loaded.graph, weights, given, o.model))
    say(comm, o.init_weights, ": ", line);
}

/// Collective.
std::unique_ptr<Steps> make_steps(TrainingGraph& g, const TrainOptions& o) {
  if (g.potential) return make_potential_steps(g, o);
  if (g.samples) return make_sample_steps(g, o);
  keep_gcn_norm(g.graph, g.model, o.sample.is_saint());
  if (has_pairs(o.task.type)) return make_edge_steps(g, o);
  return make_node_steps(g, o);
}

/// Loads the weights that the run starts with. Collective.
void begin_weights(const TrainingGraph& loaded, WeightFile& weights, Module& model, const TrainOptions& o,
                   const ModelDescription& given, bool resumed) {
  const Communicator& comm = loaded.graph.comm();
  require<InputError>(o.epochs > 0 || o.predict.empty() || resumed || !o.init_weights.empty(), o.predict,
                      ": there are no weights to predict with, expected --init-weights, or --resume",
                      " and a checkpoint, with --epochs 0");
  if (loaded.potential) return;  // it begins with that of --init-weights
  if (!o.init_weights.empty() && !resumed) load(loaded, weights, model, o, given);
  if (!o.init_weights.empty() && resumed && !o.save_weights.empty() &&
      find_checkpoint(comm, o.init_weights).empty())
    weights.recognise(comm, o.init_weights, o.weight_names);
}

/// Makes constants of the parameters of --freeze, and of all that the modules among these names contain.
void freeze(const Communicator& comm, Module& model, const std::vector<std::string>& names) {
  comm.agree([&] {
    for (const std::string& name : names) {
      bool is_found = false;
      std::set<std::string> modules;
      for (const NamedParameter& each : model.named_parameters()) {
        modules.insert(each.name.substr(0, each.name.find('.')));
        if (each.name != name && !each.name.starts_with(name + ".")) continue;
        model.freeze(each.name);
        is_found = true;
      }
      require<InputError>(is_found, "--freeze: the network has no parameter or module '", name,
                          "', expected ", joined(modules), ", or one in them");
    }
    require<InputError>(names.empty() || std::ranges::any_of(model.parameters(), &Variable::requires_grad),
                        "--freeze: all parameters are among ", joined(names), ", expected some to train");
  });
}

/// Returns the description of the network for the metadata of a weight file, from which load_model() or
/// load_potential() make it again; nothing if the model is not this network alone, or if descriptions do
/// not cover it: edges have generated types, or categories have embeddings.
std::map<std::string, std::string> metadata_of_weights(const Module& model, const TrainingGraph& loaded) {
  if (loaded.potential) return {{model_key, loaded.model.to_json()}};
  const auto* network = dynamic_cast<const LayerStack*>(&model);
  if (network == nullptr) return {};
  const bool has_embedding =
      loaded.samples && !(loaded.samples->categories.empty() && loaded.samples->edge_categories.empty());
  ModelDescription description = network->description();
  const bool has_relations = model_type(description.type).has_relations;
  const bool is_described = has_relations ? !description.edge_types.empty() : !loaded.input->has_parameters();
  if (has_embedding || !is_described) return {};
  description.inputs = loaded.input->widths();
  return {{model_key, description.to_json()}};
}

/// Trains one epoch and evaluates it, with the averages of the weights if there are some, which the model
/// then keeps. Collective.
Epoch train_epoch(Steps& steps, WeightAverage* average, const TrainOptions& o, int epoch, EpochProgress from,
                  Optimizer& optimizer, LRScheduler* schedule, const Communicator& comm, Heartbeat& heartbeat,
                  FunctionRef<void(const EpochProgress&)> batch_done) {
  const std::string name =
      concat(o.has_several_runs() ? name_of_run(o) + ", " : "", "epoch ", epoch, "/", o.epochs);
  heartbeat.phase(name);
  EpochTimer timer(comm);
  Epoch result{.epoch = epoch};
  result.lr = optimizer.lr();
  steps.epoch(optimizer, result, timer, from, [&](const EpochProgress& now, Index batches) {
    if (batches > 1)
      heartbeat.phase(concat(name, ", batch ", now.batch, "/", batches, ", loss ", now.mean_loss()));
    if (now.batch < batches) batch_done(now);
  });
  if (average != nullptr) average->exchange();
  if (is_evaluated(o, epoch)) {
    const HaloStep halo_step(o.seed, 0);
    result.scores = steps.evaluate();
  }
  if (schedule != nullptr) schedule->step(result.loss);
  timer.finish(result);
  return result;
}

void require_new_learner(const Communicator& comm, const TrainOptions& o) {
  if (const std::string& learner = o.task.potential.learner; !learner.empty())
    require<InputError>(Checkpointer(comm, learner).latest().empty(), learner,
                        ": has a learner already, expected a new directory (--save-learner)");
}

}  // namespace

void check_outputs(const Communicator& comm, const TrainOptions& o) {
  comm.agree([&] {
    if (comm.rank() != 0) return;
    if (!o.save_weights.empty()) check_writable(o.save_weights);
    prepare_curves(o);
  });
  prepare_predictions(comm, o);
  if (!o.resume) require_new_learner(comm, o);
}

RunResult train_run(TrainingGraph& loaded, const TrainOptions& o, const ModelDescription& given,
                    Heartbeat& heartbeat) {
  const Communicator& comm = loaded.graph.comm();
  const std::unique_ptr<Steps> steps = make_steps(loaded, o);
  Module& model = steps->model();
  freeze(comm, model, o.frozen);
  const auto optimizer = make_optimizer(o, *steps);
  const auto schedule = make_schedule(o, *optimizer);
  Progress progress(o, model);
  std::optional<WeightAverage> average;
  if (o.ema > 0) average.emplace(model, o.ema);
  steps->keep_average(average ? &*average : nullptr);
  Checkpoints checkpoints(o, loaded, progress, average ? &*average : nullptr);
  const CheckpointInfo start = checkpoints.resume(model, *optimizer, schedule.get());
  const bool resumed = !checkpoints.resumed_from().empty();
  if (o.resume && (o.epochs == 0 || !progress.is_done())) require_new_learner(comm, o);
  WeightFile weights(model);
  begin_weights(loaded, weights, model, o, given, resumed);
  Log log(comm, o, start.epoch, resumed);
  if (o.run.number == 0) log.start(loaded, o, steps->description());
  if (loaded.potential && loaded.potential->initial && o.epochs > 0 && o.eval_every > 0 && !resumed)
    log.before(steps->evaluate());
  EpochProgress from = EpochProgress::from_checkpoint(start.extra, checkpoints.resumed_from());

  for (int epoch = start.epoch + 1; !progress.is_done(); ++epoch) {
    const Epoch result =
        train_epoch(*steps, average ? &*average : nullptr, o, epoch, std::exchange(from, {}), *optimizer,
                    schedule.get(), comm, heartbeat, [&](const EpochProgress& now) {
                      checkpoints.batch_done(epoch, now, model, *optimizer, schedule.get());
                    });
    progress.add(result);
    if (average) average->exchange();  // the weights of the last step again
    log.epoch(result, progress.result());
    checkpoints.epoch_done(epoch, model, *optimizer, schedule.get());
  }
  heartbeat.phase("writing the results");
  if (average) average->exchange();
  progress.restore_best_weights();
  steps->finish();
  if (!o.save_weights.empty()) {
    std::map<std::string, std::string> metadata = metadata_of_weights(model, loaded);
    if (!loaded.potential) metadata.merge(record_of_network(o));
    weights.save(comm, o.save_weights, metadata);
    loaded.input->save_rows(o.save_weights);
  }
  const HaloStep halo_step(o.seed, 0);
  steps->predict();
  log.summary(loaded, progress.result(), steps->report());
  return progress.result();
}

}  // namespace sar::tools
