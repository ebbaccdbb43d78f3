/// The command line of `train`.
#pragma once

#include "formats/source_options.hpp"
#include "train_models.hpp"
#include "train_task.hpp"

#include <sar/core/matmul_precision.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/open_dataset.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/model/weight_names.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sar::tools {

enum class BuiltInGraph { karate, sbm };
enum class OptimizerType { adam, adamw, sgd };
enum class ScheduleType { none, step, cosine, plateau };

/// Of the learning rate.
struct ScheduleOptions {
  ScheduleType type = ScheduleType::none;
  int warm_up = 0;  ///< epochs; 0: none
  int step_size = 30, patience = 10;
  double factor = 0.1, min_lr = 0;
};

/// Of mini-batches.
struct SampleOptions {
  std::vector<Index> fan_outs;  ///< of the layers; empty: full batch. With --category, of each type of edge
  /// Types of edges with other fan-outs, as the user wrote them, and as numbers.
  std::map<std::string, std::string> relation_lists;
  std::map<std::string, std::vector<Index>> of_relations;
  Index batch_size = 1024;
  bool batch_per_rank = false, replace = false, by_weight = false, drop_last = false;
  bool evaluate = false;  ///< on sampled neighbours, too
};

struct TrainOptions {
  // the graph
  std::string dataset;            ///< path; empty: a built-in graph
  FoundDataset found;             ///< what `dataset` is
  formats::SourceOptions source;  ///< of a dataset in a format of others
  Index num_classes = 0;          ///< 0: as many as the labels tell
  BuiltInGraph graph = BuiltInGraph::sbm;
  SbmOptions sbm;
  DatasetOptions data;
  GraphOptions graph_options;
  MatmulPrecision matmul_precision = MatmulPrecision::highest;

  // the model and its training
  TaskOptions task;
  std::string category;  ///< type of the nodes that are trained on, in a graph of many types; empty: of one
  ModelOptions model;
  Index embedding = 0;  ///< width of learnable rows in the place of features; 0: none
  bool mfg = false;
  SampleOptions sample;
  OptimizerType optimizer = OptimizerType::adam;
  double lr = 0.01, weight_decay = 0, momentum = 0.9;
  ScheduleOptions schedule;
  double clip_norm = 0, clip_value = 0;  ///< 0: not
  int epochs = 100, eval_every = 1, threads = 0;
  std::uint64_t seed = 0;

  // files and directories; empty: none
  std::string log_file;
  std::string init_weights, save_weights;
  WeightNames weight_names;
  std::string checkpoint;  ///< directory
  int checkpoint_every = 10, checkpoint_keep = 3;
  Index checkpoint_batches = 0;  ///< within an epoch; 0: never
  bool resume = false;
  std::string predict;    ///< directory
  int predict_layer = 0;  ///< whose output is written, too; 0: none
};

/// Adds the options; reading them also finds out what the dataset is, and checks what goes together.
void add_options(CLI::App& app, TrainOptions& o);

}  // namespace sar::tools
