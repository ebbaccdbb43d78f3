/// The command line of `train`.
#pragma once

#include "formats/source_options.hpp"
#include "parse.hpp"
#include "source_arguments.hpp"
#include "train_models.hpp"

#include <sar/sar.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sar::examples {

struct Options {
  std::string dataset;
  FoundDataset found;             ///< what `dataset` is
  formats::SourceOptions source;  ///< of a dataset in a format of others
  Index num_classes = 0;          ///< 0: as many as the labels tell
  std::string graph = "sbm";
  SbmOptions sbm;
  DatasetOptions data;
  GraphOptions graph_options;
  ModelOptions model;
  bool mfg = false;
  std::string optimizer = "adam";
  double lr = 0.01, weight_decay = 0, momentum = 0.9;
  int epochs = 100, eval_every = 1, threads = 0;
  std::uint64_t seed = 0;
  std::string log_file;
  std::string init_weights, save_weights;
  std::string checkpoint;  ///< directory
  int checkpoint_every = 10, checkpoint_keep = 3;
  bool resume = false;
  std::string predict;    ///< directory
  int predict_layer = 0;  ///< whose output is written, too; 0: none
};

/// Reads the command line into `o`. An exit code when the program should end here: 0 after --help, 2 for
/// wrong usage.
inline std::optional<int> parse_options(int argc, char** argv, const Communicator& comm, Options& o) {
  CLI::App app("Trains a graph neural network, full batch, on all ranks of mpirun.", "train");
  app.get_formatter()->column_width(40);
  app.option_defaults()->always_capture_default();

  const CLI::Validator not_empty(
      [](const std::string& path) { return path.empty() ? std::string("the path is empty") : ""; }, "");
  auto* dataset = app.add_option("--dataset", o.dataset,
                                 "dataset directory, partition directory, DGL partition, OGB folder, edge "
                                 "list or Matrix Market file")
                      ->check(not_empty)
                      ->option_text("PATH");
  app.add_option("--partition-data", o.dataset, "the same, of a graph that is partitioned")
      ->check(not_empty)
      ->option_text("JSON")
      ->excludes(dataset);
  const std::vector<CLI::Option*> source = add_source_options(app, o.source);
  app.add_option("--num-classes", o.num_classes, "at least that of the labels; 0: that")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--graph", o.graph, "built-in graph: karate or sbm")
      ->check(CLI::IsMember({"karate", "sbm"}))
      ->excludes(dataset);
  app.add_option("--nodes", o.sbm.nodes, "sbm: number of nodes")->check(CLI::PositiveNumber);
  app.add_option("--degree", o.sbm.degree, "sbm: average in-degree")->check(CLI::PositiveNumber);
  app.add_option("--classes", o.sbm.classes, "sbm: number of classes")->check(CLI::PositiveNumber);
  app.add_option("--features", o.sbm.features, "sbm: width of the features")->check(CLI::PositiveNumber);
  app.add_option("--homophily", o.sbm.homophily, "sbm: share of edges inside a class")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--train-share", o.sbm.train_share, "sbm: share of the training nodes")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--add-reverse-edges", o.data.add_reverse_edges, "every edge in both directions");
  app.add_flag("--add-self-loops", o.data.add_self_loops, "an edge from every node to itself");
  app.add_flag("--drop-duplicates", o.data.drop_duplicates, "parallel edges count once");
  app.add_flag("--normalize-features", o.data.normalize_features, "divide feature rows by their sum");
  const std::map<std::string, PartitionMethod> partitions{{"contiguous", PartitionMethod::contiguous},
                                                          {"random", PartitionMethod::random},
                                                          {"metis", PartitionMethod::metis},
                                                          {"ldg", PartitionMethod::ldg}};
  auto* partition = app.add_option("--partition", o.data.partition, "contiguous, random, metis or ldg")
                        ->transform(CLI::CheckedTransformer(partitions).description(""))
                        ->default_str("contiguous");

  app.add_option("--model", o.model.kind, "sage, gcn, gat, gatv2, gin or rgcn")
      ->check(CLI::IsMember({"sage", "gcn", "gat", "gatv2", "gin", "rgcn"}));
  app.add_option("--layers", o.model.layers, "number of convolutions")->check(CLI::PositiveNumber);
  app.add_option("--hidden", o.model.hidden, "width between them, of all heads together")
      ->check(CLI::PositiveNumber);
  app.add_option("--heads", o.model.heads, "gat, gatv2: attention heads, but for the last layer")
      ->check(CLI::PositiveNumber);
  app.add_option("--dropout", o.model.dropout, "probability, sage: between layers, others: in front of each")
      ->check(CLI::Range(0.0, 0.999));
  app.add_option("--attn-dropout", o.model.attention_dropout, "gat, gatv2: probability for a coefficient")
      ->check(CLI::Range(0.0, 0.999));
  app.add_option("--num-rels", o.model.num_rels,
                 "rgcn: types of edges. Graphs come without: they are generated, on built-in graphs from the "
                 "classes of both ends and noise, on others noise alone, since labels must not leak")
      ->check(CLI::PositiveNumber);
  app.add_option("--num-bases", o.model.num_bases, "rgcn: matrices that the types share; 0: one for each")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--batch-norm", o.model.batch_norm,
               "batch norm over all nodes of all workers between layers (gin has it inside of them anyway)");

  app.add_option("--epochs", o.epochs, "full-batch steps; 0: only --predict")->check(CLI::NonNegativeNumber);
  app.add_option("--optimizer", o.optimizer, "adam, adamw or sgd")
      ->check(CLI::IsMember({"adam", "adamw", "sgd"}));
  app.add_option("--lr", o.lr, "learning rate")->check(CLI::Range(0.0, 1e6));
  app.add_option("--momentum", o.momentum, "of sgd")->check(CLI::Range(0.0, 1.0));
  app.add_option("--weight-decay", o.weight_decay, "on all parameters")->check(CLI::Range(0.0, 1e6));
  app.add_option("--seed", o.seed,
                 "of initial parameters, dropout, the generated graph and the random partition");

  app.add_flag("--mfg", o.mfg,
               "training steps compute only what the training nodes depend on (batch norm then sees those "
               "nodes only)");
  const std::map<std::string, HaloMode> modes{{"rematerialize", HaloMode::rematerialize},
                                              {"sequential", HaloMode::sequential},
                                              {"one-shot", HaloMode::one_shot}};
  app.add_option("--mode", o.graph_options.mode, "rematerialize, sequential or one-shot")
      ->transform(CLI::CheckedTransformer(modes).description(""))
      ->default_str("rematerialize");
  app.add_option("--pipeline-depth", o.graph_options.pipeline_depth, "stages in flight while one is used")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-halo-bytes", o.graph_options.max_halo_bytes,
                 "cut stages whose halo rows need more; 0: never")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--edge-block", o.graph_options.edge_block,
                 "edges at a time where a message is a function of its own (rgcn without bases)")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", o.threads,
                 "per rank; 0: the processors a rank is bound to, shared among the ranks bound to them")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--eval-every", o.eval_every, "evaluate after so many epochs and after the last; 0: never")
      ->check(CLI::NonNegativeNumber);
  auto* predict = app.add_option("--predict", o.predict,
                                 "after the last epoch, write logits.npy and labels.npy there, rows by "
                                 "original node id")
                      ->option_text("DIR");
  app.add_option("--predict-layer", o.predict_layer, "and the output of this layer, embeddings.npy")
      ->check(CLI::PositiveNumber)
      ->needs(predict);
  app.add_option("--log", o.log_file, "one JSON object a line: epochs, then a summary")->option_text("FILE");
  app.add_option("--init-weights", o.init_weights, "initial weights: .safetensors, names as in DGL")
      ->option_text("FILE");
  app.add_option("--save-weights", o.save_weights, "write the weights after the last epoch")
      ->option_text("FILE");
  auto* checkpoint =
      app.add_option("--checkpoint", o.checkpoint, "write checkpoints there")->option_text("DIR");
  app.add_option("--checkpoint-every", o.checkpoint_every, "epochs; and one after the last epoch")
      ->check(CLI::PositiveNumber)
      ->needs(checkpoint);
  app.add_option("--keep", o.checkpoint_keep, "delete all but the last so many checkpoints")
      ->check(CLI::PositiveNumber)
      ->needs(checkpoint);
  app.add_flag("--resume", o.resume,
               "go on from the last checkpoint, if any, on any number of ranks and partition; the log, too")
      ->needs(checkpoint);

  const auto exit_code = parse(app, argc, argv, comm, [&] {
    if (o.predict_layer > o.model.layers)
      throw CLI::ValidationError(concat("--predict-layer: there is no layer ", o.predict_layer,
                                        ", expected at most --layers ", o.model.layers));
    o.found = find_dataset(o.dataset);
    for (const CLI::Option* option : source)
      if (option->count() > 0 && (o.dataset.empty() || o.found.kind != DatasetKind::unknown))
        throw CLI::ValidationError(
            option->get_name() +
            ": is for a --dataset that is an edge list, a Matrix Market file or an OGB folder, not for " +
            (o.dataset.empty() ? "a built-in graph" : o.dataset));
    if (o.found.is_partitioned() && partition->count() > 0)
      throw CLI::ValidationError("--partition: " + o.dataset + " is partitioned already");
  });
  if (exit_code) return exit_code;
  o.sbm.seed = o.seed;
  o.data.partition_seed = o.seed;
  return std::nullopt;
}

}  // namespace sar::examples
