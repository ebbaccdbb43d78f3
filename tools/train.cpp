/// Full-batch training with everything selectable on the command line; try --help.
///     mpirun -n 4 train --graph sbm --nodes 160000 --degree 28 --batch-norm --log log.jsonl
///
/// Room tools: Programs that users run: train, partition and generate, and the formats that they read.
#include "run.hpp"
#include "train_checkpoint.hpp"
#include "train_data.hpp"
#include "train_log.hpp"
#include "train_models.hpp"
#include "train_options.hpp"
#include "train_predict.hpp"

#include <sar/core/file.hpp>
#include <sar/sar.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

using namespace sar;
using examples::Options;
using examples::Relations;

namespace {

std::unique_ptr<Optimizer> make_optimizer(const Options& o, const Module& model) {
  if (o.optimizer == "sgd")
    return std::make_unique<SGD>(
        model.named_parameters(),
        SGDOptions{.lr = o.lr, .momentum = o.momentum, .weight_decay = o.weight_decay});
  const AdamOptions adam{.lr = o.lr, .weight_decay = o.weight_decay};
  if (o.optimizer == "adamw") return std::make_unique<AdamW>(model.named_parameters(), adam);
  return std::make_unique<Adam>(model.named_parameters(), adam);
}

/// Generated edge types, for the model that wants them. Those of built-in graphs tell of the labels.
std::vector<Relations> make_relations(const GraphShardManager& graph, const NodeData& data,
                                      const Options& o) {
  if (o.model.kind != "rgcn") return {};
  Tensor labels;
  if (o.dataset.empty()) {
    labels = Tensor({graph.num_nodes(), 1});
    std::copy(data.labels.begin(), data.labels.end(), labels.data());
  }
  return {examples::make_relations(graph, o.model.num_rels, labels)};
}

/// What the training nodes depend on, and nothing else.
struct TrainingPart {
  std::vector<MessageFlowGraph> mfgs;
  std::vector<Relations> relations;
  Tensor features;             ///< of the first one's sources
  Array<std::int64_t> labels;  ///< of the last one's destinations, the training nodes
  Array<std::uint8_t> mask;    ///< all of them

  TrainingPart(const GraphShardManager& graph, const NodeData& data, std::span<const Relations> of_graph,
               int layers) {
    Array<Index> seeds;
    const Index first = data.book.begin(graph.comm().rank());
    for (std::size_t i = 0; i < data.train_mask.size(); ++i) {
      if (data.train_mask[i] == 0) continue;
      seeds.push_back(first + static_cast<Index>(i));
      labels.push_back(data.labels[i]);
    }
    mask.assign(seeds.size(), 1);
    mfgs = construct_mfgs(graph, seeds, layers);
    features = gather_rows(data.features, mfgs.front().src_rows()).value();
    for (const Relations& all : of_graph)
      for (const MessageFlowGraph& mfg : mfgs) {
        relations.push_back({.types = {}, .norm = gather_rows(all.norm, mfg.edge_rows()).value()});
        for (const Index e : mfg.edge_rows())
          relations.back().types.push_back(all.types[static_cast<std::size_t>(e)]);
      }
  }
};

void train(const Communicator& comm, const Options& o) {
  comm.agree([&] {
    if (comm.rank() == 0 && !o.save_weights.empty()) check_writable(o.save_weights);
  });
  examples::prepare_predictions(comm, o);
  NodeData data = examples::load_data(comm, o);
  const GraphShardManager graph = construct_full_graph(comm, data, o.graph_options);
  Generator gen(o.seed);
  examples::NodeClassifier model(o.model, data.features.row_size(), data.num_classes, comm, gen);
  const auto optimizer = make_optimizer(o, model);
  examples::Checkpoints checkpoints(comm, o, graph);
  const CheckpointInfo start = checkpoints.resume(model, *optimizer);
  require<InputError>(o.epochs > 0 || o.predict.empty() || start.epoch > 0 || !o.init_weights.empty(),
                      o.predict,
                      ": there are no weights to predict with, expected --init-weights, or --resume",
                      " and a checkpoint, where --epochs is 0");
  if (!o.init_weights.empty() && start.epoch == 0) load_weights(comm, o.init_weights, model);
  examples::Log log(comm, o.log_file, o.epochs, start);
  log.start(data, graph, o);
  std::optional<TrainingPart> part;
  const std::vector<Relations> relations = make_relations(graph, data, o);
  if (o.mfg && o.epochs > 0) part.emplace(graph, data, relations, o.model.layers);

  for (int epoch = start.epoch + 1; epoch <= o.epochs; ++epoch) {
    examples::EpochTimer timer(comm);
    examples::Epoch result{.epoch = epoch};
    {
      model.train();
      Tape tape;
      Variable loss =
          part ? cross_entropy(model(part->mfgs, part->features, part->relations), part->labels, part->mask,
                               comm)
               : cross_entropy(model(graph, data.features, relations), data.labels, data.train_mask, comm);
      timer.forward_done();
      tape.backward(loss);
      gather_grads(comm, model);
      optimizer->step();
      optimizer->zero_grad();
      timer.backward_done();
      result.loss = static_cast<double>(loss.value().item());
      require(std::isfinite(result.loss), "the loss of epoch ", epoch, " is ", result.loss,
              ": try a smaller --lr than ", o.lr);
    }
    if (o.eval_every > 0 && (epoch % o.eval_every == 0 || epoch == o.epochs)) {
      model.eval();
      const Tensor logits = model(graph, data.features, relations).value();
      result.accuracy = {accuracy(logits, data.labels, data.train_mask, comm),
                         accuracy(logits, data.labels, data.val_mask, comm),
                         accuracy(logits, data.labels, data.test_mask, comm)};
    }
    timer.finish(result);
    log.epoch(result);
    checkpoints.epoch_done(epoch, model, *optimizer, log.progress());
  }
  if (!o.save_weights.empty()) save_weights(comm, o.save_weights, model);
  examples::predict(comm, o, model, graph, data, relations);
  log.summary(graph);
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  return examples::run("train", [&](const Communicator& comm) {
    Options options;
    if (const auto exit_code = examples::parse_options(argc, argv, comm, options)) return *exit_code;
    const ThreadLimit threads(options.threads > 0 ? options.threads : default_num_threads(comm));
    train(comm, options);
    return 0;
  });
}
