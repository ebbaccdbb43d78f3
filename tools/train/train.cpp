/// Trains a graph neural network, full batch or on mini-batches; see --help.
///     mpirun -n 4 train --graph sbm --nodes 160000 --degree 28 --batch-norm --log log.jsonl
///
/// Room tools/train: The program `train`.
#include "heartbeat.hpp"
#include "program.hpp"
#include "train_checkpoint.hpp"
#include "train_data.hpp"
#include "train_edge_steps.hpp"
#include "train_gcn_norm.hpp"
#include "train_graph.hpp"
#include "train_log.hpp"
#include "train_node_steps.hpp"
#include "train_optimizer.hpp"
#include "train_options.hpp"
#include "train_predict.hpp"

#include <sar/core/files/file.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sar::tools {
namespace {

/// Loads the initial weights; rank 0 prints which names it recognized, and what they say about the graph.
/// Collective.
void load(const TrainingGraph& loaded, WeightFile& weights, Module& model, const TrainOptions& o,
          const ModelDescription& given) {
  const Communicator& comm = loaded.graph.comm();
  if (const std::string checkpoint = find_checkpoint(comm, o.init_weights); !checkpoint.empty()) {
    load_model_of_checkpoint(comm, checkpoint, model);
    if (comm.rank() == 0) std::cout << printable("initial weights: the model of " + checkpoint) << std::endl;
    return;
  }
  std::vector<std::string> lines = weights.load(comm, o.init_weights, o.weight_names);
  const std::vector<std::string> notes = graph_notes(loaded.graph, weights, given, o.model);
  lines.insert(lines.end(), notes.begin(), notes.end());
  if (comm.rank() != 0) return;
  for (const std::string& line : lines)
    std::cout << printable(concat(o.init_weights, ": ", line)) << std::endl;
}

/// Collective.
std::unique_ptr<Steps> make_steps(TrainingGraph& g, const TrainOptions& o) {
  // otherwise the graph changes twice an epoch, or with every batch, or the features change, or they are
  // sparse and multiplied before they are aggregated
  const bool cached = o.sample.fan_outs.empty() && (!o.mfg || o.eval_every == 0) &&
                      !g.input->has_learnable_rows() && !g.input->has_parameters() && !g.input->is_sparse();
  keep_gcn_norm(g.graph, g.model);
  if (o.task.type != TaskType::node)
    return std::make_unique<EdgeSteps>(g.graph, g.data, *g.input, g.relations, o, g.model, cached, g.edges,
                                       g.gen);
  auto steps = std::make_unique<NodeSteps>(g.graph, g.data, *g.input, g.relations, o, g.model, cached, g.gen);
  steps->predict_types(g.node_types);
  return steps;
}

/// Loads the weights that the run starts with. Collective.
void begin_weights(const TrainingGraph& loaded, WeightFile& weights, Module& model, const TrainOptions& o,
                   const ModelDescription& given, bool resumed) {
  const Communicator& comm = loaded.graph.comm();
  require<InputError>(o.epochs > 0 || o.predict.empty() || resumed || !o.init_weights.empty(), o.predict,
                      ": there are no weights to predict with, expected --init-weights, or --resume",
                      " and a checkpoint, with --epochs 0");
  if (!o.init_weights.empty() && !resumed) load(loaded, weights, model, o, given);
  if (!o.init_weights.empty() && resumed && !o.save_weights.empty() &&
      find_checkpoint(comm, o.init_weights).empty())
    weights.recognise(comm, o.init_weights, o.weight_names);
}

/// Returns the description of the network, if it is the whole model.
std::map<std::string, std::string> metadata_of_weights(const Module& model) {
  const auto* network = dynamic_cast<const NodeClassifier*>(&model);
  return network != nullptr ? network->metadata() : std::map<std::string, std::string>();
}

void train(const Communicator& comm, const TrainOptions& options) {
  TrainOptions o = options;
  choose_gcn_norm(comm, o);
  const ThreadLimit threads(o.threads > 0 ? o.threads : default_num_threads(comm));
  const MatmulPrecisionScope precision(o.matmul_precision);
  if (o.describe) return describe_dataset(comm, o);
  comm.agree([&] {
    if (comm.rank() == 0 && !o.save_weights.empty()) check_writable(o.save_weights);
  });
  prepare_predictions(comm, o);
  Heartbeat heartbeat(comm.rank() == 0 ? &std::cout : nullptr);
  TrainingGraph loaded = load_training_graph(comm, o, heartbeat);
  GraphShardManager& graph = loaded.graph;
  const bool samples = !o.sample.fan_outs.empty() || (o.mfg && o.task.type != TaskType::node);
  if (!samples && o.model.attention_dropout == 0) graph.drop_edge_ids();  // nothing reads them
  const std::unique_ptr<Steps> steps = make_steps(loaded, o);
  Module& model = steps->model();
  const auto optimizer = make_optimizer(o, model);
  const auto schedule = make_schedule(o, *optimizer);
  Checkpoints checkpoints(comm, o, graph, *loaded.input);
  const CheckpointInfo start = checkpoints.resume(model, *optimizer, schedule.get());
  WeightFile weights(model);
  const std::map<std::string, std::string> metadata = metadata_of_weights(model);
  begin_weights(loaded, weights, model, o, options.model, !checkpoints.resumed_from().empty());
  Log log(comm, o, start, checkpoints.resumed_from());
  log.start(loaded, o, steps->description());
  EpochProgress progress = EpochProgress::from_checkpoint(start.extra, checkpoints.resumed_from());

  for (int epoch = start.epoch + 1; epoch <= o.epochs; ++epoch) {
    heartbeat.phase(concat("epoch ", epoch, "/", o.epochs));
    EpochTimer timer(comm);
    Epoch result{.epoch = epoch};
    result.lr = optimizer->lr();
    steps->epoch(*optimizer, result, timer, std::exchange(progress, {}),
                 [&](const EpochProgress& now, Index batches) {
                   heartbeat.phase(concat("epoch ", epoch, "/", o.epochs, ", batch ", now.batch, "/", batches,
                                          ", loss ",
                                          now.loss_sum / static_cast<double>(std::max<Index>(now.seeds, 1))));
                   if (now.batch < batches)
                     checkpoints.batch_done(epoch, now, model, *optimizer, schedule.get(), log.progress());
                 });
    if (o.eval_every > 0 && (epoch % o.eval_every == 0 || epoch == o.epochs)) {
      const HaloStep halo_step(o.seed, 0);
      result.scores = steps->evaluate();
    }
    if (schedule) schedule->step(result.loss);
    timer.finish(result);
    log.epoch(result);
    checkpoints.epoch_done(epoch, model, *optimizer, schedule.get(), log.progress());
  }
  heartbeat.phase("writing the results");
  if (!o.save_weights.empty()) weights.save(comm, o.save_weights, metadata);
  const HaloStep halo_step(o.seed, 0);
  steps->predict();
  log.summary(graph);
}

}  // namespace
}  // namespace sar::tools

int main(int argc, char** argv) {
  using namespace sar;
  const Environment environment(argc, argv);
  CLI::App app("Trains a graph neural network on all ranks of mpirun, full batch or on mini-batches.",
               "train");
  tools::TrainOptions options;
  add_options(app, options);
  return tools::run(app, argc, argv, [&](const Communicator& comm) { tools::train(comm, options); });
}
