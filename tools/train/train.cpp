/// Trains a graph neural network, full batch or on mini-batches; see --help.
///     mpirun -n 4 train --graph sbm --nodes 160000 --degree 28 --batch-norm --log log.jsonl
///
/// Room tools/train: The program `train`.
#include "generated_relations.hpp"
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
#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {
namespace {

/// Generates edge types for a model with relations; for built-in graphs they depend on the labels.
std::vector<GraphRelations> generate_relations(const GraphShardManager& graph, const NodeData& data,
                                               const TrainOptions& o) {
  if (!model_type(o.model.type).has_relations) return {};
  Tensor labels;
  if (o.dataset.empty()) {
    labels = Tensor({graph.num_nodes(), 1});
    std::copy(data.labels.begin(), data.labels.end(), labels.data());
  }
  return {make_relations(graph, o.model.num_rels, labels)};
}

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

/// Checks before the training that parameters and rows of the model fit in memory. Collective.
void require_memory_of_model(const Communicator& comm, const TrainOptions& o, const ModelDescription& m,
                             const NodeData& data, Index in_feats, Index num_classes, Index num_types) {
  const Index matrices = !model_type(m.type).has_relations ? 1 : m.num_bases > 0 ? m.num_bases : m.num_rels;
  const double copies = o.epochs > 0 ? 3 : 1;  // the gradient, and at least one of the optimizer
  const auto nodes = static_cast<double>(data.book.num_nodes(comm.rank()));
  // The backward pass needs the rows of every layer, a forward pass alone those of one.
  const bool keeps_rows = o.epochs > 0 && !o.mfg && o.sample.fan_outs.empty();
  const bool has_all_rows = o.epochs == 0 || (o.eval_every > 0 && !o.sample.evaluate) || !o.predict.empty();
  double numbers = 0, rows = 0;
  for (Index i = 0; i < m.layers; ++i) {
    const auto in = static_cast<double>(i == 0 ? in_feats : m.hidden);
    const auto out =
        static_cast<double>(i + 1 == m.layers && o.task.type == TaskType::node ? num_classes : m.hidden);
    numbers += copies * in * out * static_cast<double>(matrices);
    if (keeps_rows)
      rows += nodes * out;
    else if (has_all_rows)
      rows = std::max(rows, nodes * out);
  }
  if (o.task.type != TaskType::node)
    numbers +=
        copies * static_cast<double>(m.hidden + num_classes + num_types) * static_cast<double>(m.hidden);
  std::string what = concat("the model of --layers ", m.layers, ", --hidden ", m.hidden);
  if (model_type(m.type).has_relations)
    what +=
        o.category.empty() ? concat(", --num-rels ", m.num_rels) : concat(", ", m.num_rels, " edge types");
  if (o.task.type != TaskType::link)
    what += concat(" and ", num_classes, " classes");
  else if (num_types > 1)
    what += concat(" and ", num_types, " edge types");
  require_memory(comm, (numbers + rows) * static_cast<double>(sizeof(real)), what);
}

/// Checks before the training that the negative pairs of a step, and the scores of an evaluation, fit in
/// memory. Collective.
void require_memory_of_pairs(const Communicator& comm, const TrainOptions& o, const EdgeTask& edges) {
  if (o.task.type != TaskType::link || o.epochs == 0) return;
  const SampleOptions& s = o.sample;
  auto positives = static_cast<double>(edges.train.edges.size());
  if (!s.fan_outs.empty())
    positives = std::min(positives, static_cast<double>(s.batch_size) / (s.batch_per_rank ? 1 : comm.size()));
  // both ends as indices, and as rows in the forward and in the backward pass
  const double pair_bytes = 2 * sizeof(Index) + 4.0 * static_cast<double>(o.model.hidden) * sizeof(real);
  require_memory(comm, positives * static_cast<double>(o.task.negatives) * pair_bytes,
                 concat("a step with --negatives ", o.task.negatives));
  const Index evaluated = std::max(edges.valid.edges.size(), edges.test.edges.size());
  if (o.eval_every > 0)
    require_memory(comm, static_cast<double>(evaluated * o.task.eval_negatives) * sizeof(real),
                   concat("an evaluation with --eval-negatives ", o.task.eval_negatives));
}

/// Prepares the edges of the tasks link and edge, after a check of the memory and of the files of
/// predictions. Collective.
EdgeTask prepare_edges(const Communicator& comm, const TrainOptions& o, NodeData& data, EdgeData given) {
  const TaskType task = o.task.type;
  EdgeTask edges;
  if (task != TaskType::node) edges = make_edge_task(comm, o, data, std::move(given));
  if (task == TaskType::edge && !o.predict.empty()) require_edge_ids(comm, data, edges.all.edges.id);
  require_memory_of_model(comm, o, o.model, data, o.embedding > 0 ? o.embedding : data.features.row_size(),
                          task == TaskType::node ? data.num_classes : edges.num_classes, edges.num_types);
  require_memory_of_pairs(comm, o, edges);
  return edges;
}

/// A dataset with one type of nodes, or a built-in graph. Collective.
TrainingGraph load_untyped_graph(const Communicator& comm, const TrainOptions& o, Heartbeat& heartbeat) {
  EdgeData edge_data;
  NodeData data = load_data(comm, o, edge_data);
  auto input = std::make_unique<NodeInput>(comm, o, data);
  EdgeTask edges = prepare_edges(comm, o, data, std::move(edge_data));
  heartbeat.phase("building the graph and the model");
  GraphShardManager graph = construct_full_graph(comm, data, o.graph_options);
  std::vector<GraphRelations> relations = generate_relations(graph, data, o);
  const std::array<Index, 3> unlabelled =
      o.task.type == TaskType::node
          ? warn_of_unlabelled(comm, data)
          : std::array{edges.train.unlabelled, edges.valid.unlabelled, edges.test.unlabelled};
  return {.data = std::move(data),
          .edges = std::move(edges),
          .graph = std::move(graph),
          .relations = std::move(relations),
          .input = std::move(input),
          .model = o.model,
          .gen = Generator(o.seed),
          .unlabelled = unlabelled};
}

/// Collective.
TrainingGraph load_any_graph(const Communicator& comm, const TrainOptions& o, Heartbeat& heartbeat) {
  heartbeat.phase("reading the graph");
  if (o.category.empty()) return load_untyped_graph(comm, o, heartbeat);
  TrainingGraph typed = load_typed_graph(comm, o);
  require_memory_of_model(comm, o, typed.model, typed.data, typed.input->width(), typed.data.num_classes, 1);
  return typed;
}

/// Collective.
std::unique_ptr<Steps> make_steps(TrainingGraph& g, const TrainOptions& o) {
  // otherwise the graph changes twice an epoch, or with every batch, or the features change
  const bool cached = o.sample.fan_outs.empty() && (!o.mfg || o.eval_every == 0) &&
                      !g.input->has_learnable_rows() && !g.input->has_parameters();
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
  TrainingGraph loaded = load_any_graph(comm, o, heartbeat);
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
