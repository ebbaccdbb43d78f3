// SPDX-License-Identifier: MIT
#include "unread_options.hpp"

#include <sar/core/error.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

namespace sar::tools {
namespace {

/// Refuses options of layers that the model does not have.
void refuse_keys(const CLI::App& app, const ModelType& model) {
  for (const auto& [option, key] :
       std::initializer_list<std::pair<const char*, std::string>>{{"--heads", "heads"},
                                                                  {"--out-heads", "out_heads"},
                                                                  {"--attn-dropout", "attention_dropout"},
                                                                  {"--gcn-norm", "gcn_norm"},
                                                                  {"--num-bases", "num_bases"}})
    if (app.get_option(option)->count() > 0 && !model.reads(key))
      throw CLI::ValidationError(
          concat(option, ": needs --model ",
                 model_types_where([&key](const ModelType& type) { return type.reads(key); })));
}

/// Options of --task potential alone.
constexpr std::array own_options{"--valid-file",      "--test-file",    "--energy-key", "--forces-key",
                                 "--stress-key",      "--cutoff",       "--num-basis",  "--radial-basis",
                                 "--cutoff-function", "--zbl-inner",    "--zbl-outer",  "--energy-weight",
                                 "--forces-weight",   "--stress-weight"};
/// Options of other tasks that --task potential reads, too.
constexpr std::array shared_options{"--task",
                                    "--dataset",
                                    "--split-graphs",
                                    "--split-seed",
                                    "--metric",
                                    "--epochs",
                                    "--lr",
                                    "--optimizer",
                                    "--momentum",
                                    "--weight-decay",
                                    "--clip-norm",
                                    "--ema",
                                    "--schedule",
                                    "--warm-up",
                                    "--step-size",
                                    "--patience",
                                    "--lr-factor",
                                    "--min-lr",
                                    "--eval-every",
                                    "--stop-after",
                                    "--runs",
                                    "--seed",
                                    "--batch-size",
                                    "--batch-per-rank",
                                    "--drop-last",
                                    "--hidden",
                                    "--layers",
                                    "--init-weights",
                                    "--save-weights",
                                    "--threads",
                                    "--log",
                                    "--curves",
                                    "--tensorboard",
                                    "--predict",
                                    "--keep",
                                    "--checkpoint",
                                    "--resume",
                                    "--checkpoint-every",
                                    "--checkpoint-batches",
                                    "--keep-checkpoints",
                                    "--matmul-precision",
                                    "--reproducible"};

template <class List>
bool has(const List& list, const std::string& option) {
  return std::ranges::any_of(list, [&](const char* each) { return option == each; });
}

/// Refuses what is for --task potential alone and, with this task, all that it does not read.
void refuse_by_potentials(const CLI::App& app, bool is_potential) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name.starts_with("--help")) continue;
    if (!is_potential && has(own_options, name))
      throw CLI::ValidationError(name + ": needs --task potential");
    if (is_potential && !has(own_options, name) && !has(shared_options, name))
      throw CLI::ValidationError(name + ": cannot be combined with --task potential");
  }
}

/// An option, whether it is read, and with what it would be.
struct Use {
  const char* option;
  bool is_read;
  const char* with;
};

}  // namespace

void refuse_unread(const CLI::App& app, const TrainOptions& o) {
  refuse_by_potentials(app, o.task.type == TaskType::potential);
  const ModelType& model = model_type(o.model.type);
  const ScheduleType schedule = o.schedule.type;
  const bool step = schedule == ScheduleType::step, plateau = schedule == ScheduleType::plateau;
  const TaskType task = o.task.type;
  const bool link = task == TaskType::link, edge = task == TaskType::edge, graph = task == TaskType::graph;
  const bool many = has_samples(task);
  const bool samples = !o.sample.fan_outs.empty();
  refuse_keys(app, model);
  for (const Use& use : std::initializer_list<Use>{
           {"--step-size", step, "--schedule step"},
           {"--patience", plateau, "--schedule plateau"},
           {"--lr-factor", step || plateau, "--schedule step or plateau"},
           {"--min-lr", schedule == ScheduleType::cosine || plateau, "--schedule cosine or plateau"},
           {"--momentum", o.optimizer == OptimizerType::sgd, "--optimizer sgd"},
           {"--num-rels", model.has_relations && !o.is_typed(), "--model rgcn, without --category"},
           {"--relation", link, "--task link"},
           {"--category", !link && !edge, "--task node; --task link has --relation"},
           {"--split-edges", link || edge, "--task link or edge"},
           {"--exclude", (link || edge) && samples, "--sample and --task link or edge"},
           {"--predictor", link, "--task link"},
           {"--link-loss", link, "--task link"},
           {"--negatives", link, "--task link"},
           {"--negatives-from", link, "--task link"},
           {"--eval-negatives", link, "--task link"},
           {"--hits-k", link, "--task link"},
           {"--filtered-ranks", link && has_relations(o.task.predictor),
            "--task link and --predictor distmult, complex, transe or rotate"},
           {"--edge-labels", edge, "--task edge"},
           {"--sample-relation", o.is_typed(), "--category or --relation"},
           {"--sample-eval", !link && !edge, "--task node"},
           {"--batch-size", samples || many || o.sample.saint,
            "--sample, --sampler saint-node, saint-edge or saint-walk, or --task graph or potential"},
           {"--batch-per-rank", samples || many, "--sample or --task graph or potential"},
           {"--drop-last", samples || many, "--sample or --task graph or potential"},
           {"--checkpoint-batches", many || o.sample.has_batches(), "mini-batches"},
           {"--split-nodes", task == TaskType::node, "--task node"},
           {"--split-graphs", many, "--task graph or potential"},
           {"--split-seed", o.draw_split.has_value(), "--split-nodes or --split-graphs"},
           {"--readout", graph, "--task graph"},
           {"--head-layers", graph, "--task graph"},
           {"--edge-features", graph && model.name == "gin", "--task graph and --model gin"},
           {"--loss", !link && !edge, "--task node or graph"},
           {"--class-weights", !link && !edge, "--task node or graph"},
           {"--label-smoothing", !link && !edge, "--task node or graph"},
           {"--predict-pairs", link || edge, "--task link or edge"},
           {"--edge-means", task == TaskType::node, "--task node"},
           {"--clusters", task == TaskType::node, "--task node"},
           {"--cluster-method", o.sample.clusters > 0, "a number of --clusters"},
           {"--num-classes", !link && !(edge && o.task.labels == LabelType::values),
            "--task node or graph, or edge with classes"}})
    if (app.get_option(use.option)->count() > 0 && !use.is_read)
      throw CLI::ValidationError(std::string(use.option) + ": needs " + use.with);
}}  // namespace sar::tools
