// SPDX-License-Identifier: MIT

/// The values of the options of `train`.
#pragma once

#include "formats/source_options.hpp"
#include "train_task.hpp"

#include <sar/core/threads/mixed_precision.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/load_dataset.hpp>
#include <sar/graph/data/splits.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>
#include <sar/graph/sampling/saint_loader.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/models/weight_names.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sar::tools {

enum class BuiltInGraph { karate, sbm };
enum class OptimizerType { adam, adamw, sgd };
enum class ScheduleType { none, step, cosine, plateau };
enum class KeptWeights { last, best };

/// The schedule of the learning rate.
struct ScheduleOptions {
  ScheduleType type = ScheduleType::none;
  int warm_up = 0;  ///< epochs; 0: none
  int step_size = 30, patience = 10;
  double factor = 0.1, min_lr = 0;
};

enum class Sampler { neighbor, labor, saint_node, saint_edge, saint_walk };

inline const Choices<Sampler> samplers{{"neighbor", Sampler::neighbor},
                                       {"labor", Sampler::labor},
                                       {"saint-node", Sampler::saint_node},
                                       {"saint-edge", Sampler::saint_edge},
                                       {"saint-walk", Sampler::saint_walk}};

/// Mini-batches: sampled, or of graphs.
struct SampleOptions {
  std::vector<Index> fan_outs;  ///< one per layer; empty: full batch. With --category: per edge type
  /// Edge types with their own fan-outs, as text and as numbers.
  std::map<std::string, std::string> relation_lists;
  std::map<std::string, std::vector<Index>> of_relations;
  Index batch_size = 1024;  ///< with --task graph: 32, unless it is given
  bool batch_per_rank = false, replace = false, by_weight = false, drop_last = false;
  bool evaluate = false;  ///< evaluate on sampled in-edges, too
  Sampler sampler = Sampler::neighbor;
  bool redraw = false;  ///< in each batch of an epoch
  // batches of clusters, in place of fan-outs
  static constexpr Index parts = -1;  ///< clusters are the parts of a partition directory
  Index clusters = 0;                 ///< 0: none
  Index clusters_per_batch = 1;
  PartitionMethod cluster_method = PartitionMethod::automatic;
  // batches of GraphSAINT, in place of fan-outs; batch_size is the number of draws
  Index walk_length = 2, saint_batches = 0, saint_coverage = 50;

  [[nodiscard]] bool is_labor() const noexcept { return sampler == Sampler::labor; }
  [[nodiscard]] bool is_saint() const noexcept { return sampler >= Sampler::saint_node; }
  [[nodiscard]] bool has_batches() const noexcept { return !fan_outs.empty() || clusters != 0 || is_saint(); }
};

/// One of the runs that a start of `train` makes, with its seed in TrainOptions::seed.
struct RunNumber {
  int number = 0, count = 1;
  Index split = 0;         ///< of the dataset
  bool of_splits = false;  ///< runs are of several splits
};

struct TrainOptions {
  // the graph
  std::string dataset;            ///< path; empty: a generated graph
  FoundDataset found;             ///< the format of `dataset`
  formats::SourceOptions source;  ///< for files in formats of other libraries
  bool describe = false;          ///< prints what is in the dataset, and trains nothing
  Index num_classes = 0;          ///< 0: from the labels
  BuiltInGraph graph = BuiltInGraph::sbm;
  SbmOptions sbm;
  DatasetOptions data{.sparse_features = SparseFeatures::automatic};
  std::string edge_means;  ///< field of the edges whose means are the features; empty: none
  std::optional<std::uint64_t> split_seed;
  std::optional<DrawSplitOptions> draw_split;  ///< in place of the dataset's masks
  GraphOptions graph_options;
  Index halo_cache_bytes = 0;  ///< of input rows of other ranks; 0: none are kept
  MatmulPrecision matmul_precision = MatmulPrecision::highest;
  bool mixed_precision = false;
  bool bfloat16_features = false;

  // the model and its training
  TaskOptions task;
  std::string category;                        ///< typed graph, task node: node type with the labels
  std::string relation;                        ///< typed graph, task link: edge type that is predicted
  std::vector<std::string> reverse_relations;  ///< edge types with the reverse edges of `relation`
  ModelDescription model{.hidden = 256,
                         .norm = "none",
                         .dropout = 0.5,
                         .residual = "none",
                         .jk = "none",
                         .readout = "none",
                         .num_rels = 4};  ///< without the widths of the data
  Index embedding = 0;  ///< width of learnable rows that replace the features; 0: none
  bool mfg = false;
  bool edge_features = false;  ///< --task graph: messages have features of the edges
  SampleOptions sample;
  OptimizerType optimizer = OptimizerType::adam;
  double lr = 0.01, weight_decay = 0, momentum = 0.9;
  std::map<std::string, double> lr_factors;  ///< of parameters and modules
  std::vector<std::string> frozen;           ///< parameters and modules
  ScheduleOptions schedule;
  double clip_norm = 0;  ///< 0: no limit
  double ema = 0;        ///< decay of the averages of the weights; 0: no averages
  int epochs = 100, eval_every = 1, threads = 0;
  int stop_after = 0;  ///< epochs without a better validation value; 0: never
  KeptWeights keep = KeptWeights::last;
  std::uint64_t seed = 0;
  int runs = 1;               ///< with the seeds seed, seed + 1, ...
  bool all_splits = false;    ///< runs on each split of the dataset
  std::vector<Index> splits;  ///< on these; empty, unless all: on one
  RunNumber run;              ///< the one that these are the options of
  int num_ranks = 1;          ///< of the program; known when a run begins

  // files and directories; empty: none
  std::string log_file;
  std::string curves;       ///< picture of the curves
  std::string tensorboard;  ///< directory of event files
  std::string init_weights, save_weights;
  WeightNames weight_names;
  std::string checkpoint;  ///< directory
  int checkpoint_every = 10, checkpoint_keep = 3;
  Index checkpoint_batches = 0;  ///< within an epoch; 0: never
  bool resume = false;
  std::string predict;        ///< directory
  std::string predict_pairs;  ///< file of pairs of nodes, whose scores are written there
  std::string node_names;     ///< file with the name of each node, if they have names; known after loading
  int predict_layer = 0;      ///< layer whose output is also written; 0: none

  /// Whether the graph has node and edge types.
  [[nodiscard]] bool is_typed() const noexcept { return !category.empty() || !relation.empty(); }
  [[nodiscard]] bool has_several_runs() const noexcept { return run.count > 1; }
  /// Before the number of splits is known.
  [[nodiscard]] bool may_have_several_runs() const noexcept {
    return runs > 1 || all_splits || splits.size() > 1;
  }
};

/// Returns what tells a run from the others, in names of files: "seed-3", "seed-3-split-1".
std::string name_of_run(const TrainOptions& o);
/// Returns the activation of a network without --activation: ELU after attention without a norm, else ReLU.
std::string default_activation(const ModelDescription& model);

}  // namespace sar::tools
