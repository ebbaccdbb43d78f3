// SPDX-License-Identifier: MIT
#include "formats/text.hpp"
#include "option_table.hpp"

#include <sar/core/error.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {
namespace {

void refuse(bool wrong, const std::string& what) {
  if (wrong) throw CLI::ValidationError(what);
}

/// Refuses what graph samples do not go with. Throws CLI::ValidationError.
void check_samples(const TrainOptions& o) {
  if (o.task.type != TaskType::graph) return;
  refuse(o.dataset.empty(), "--task: graph needs a --dataset, a TU or OGB folder of many graphs");
  refuse(o.data.remaining_self_loops, "--add-self-loops: remaining cannot be combined with --task graph");
  refuse(
      model_type(o.model.type).has_relations,
      concat("--model: ", o.model.type, " reads types of edges, expected ",
             model_types_where([](const ModelType& type) { return type.is_stack() && !type.has_relations; }),
             " for --task graph"));
}

/// Checks what --task potential needs. Throws CLI::ValidationError.
void check_potential(const CLI::App& app, const TrainOptions& o) {
  const PotentialOptions& p = o.task.potential;
  const ModelType& model = model_type(o.model.type);
  const bool is_task = o.task.type == TaskType::potential;
  refuse(model.is_potential && !is_task, concat("--model: ", model.name, " needs --task potential"));
  refuse(
      !model.is_potential && is_task,
      concat("--model: ", model.name, " cannot be combined with --task potential, expected painn or mace"));
  if (!is_task) {
    refuse(p.files.size() > 1,
           concat("--dataset: ", joined(p.files), ", expected one path without --task potential"));
    return;
  }
  refuse(o.dataset.empty(), "--task: potential needs a --dataset, a file of structures in extended XYZ");
  refuse((!p.valid_files.empty() || !p.test_files.empty()) && o.draw_split,
         "--split-graphs: cannot be combined with --valid-file or --test-file");
  const bool is_new = o.init_weights.empty();
  refuse(is_new && !p.new_species.empty(), "--new-species: needs --init-weights");
  refuse(is_new && p.shifts == EnergySource::keep, "--energy-shifts: keep needs --init-weights");
  refuse(is_new && p.scale == EnergySource::keep, "--energy-scale: keep needs --init-weights");
  const ModelDescription& m = o.model;
  refuse(m.cutoff == 0, "--cutoff: is 0, expected more");
  refuse(m.zbl_outer == 0 ? m.zbl_inner > 0 : m.zbl_inner >= m.zbl_outer || m.zbl_outer > m.cutoff,
         concat("--zbl-inner and --zbl-outer: are ", m.zbl_inner, " and ", m.zbl_outer,
                ", expected two distances up to --cutoff, ", m.cutoff, ", the second one larger, or 0"));
  if (m.type == "mace") {
    refuse(m.hidden_l > m.max_l,
           concat("--hidden-ell: is ", m.hidden_l, ", expected a number up to --max-ell, ", m.max_l));
    refuse(m.zbl_power > 0 && m.zbl_outer > 0, "--pair-repulsion: cannot be combined with --zbl-outer");
  }
  for (const char* option : {"--radial-basis", "--cutoff-function"})
    refuse(model.name == std::string("mace") && app.count(option) > 0,
           std::string(option) + ": needs --model painn");
  for (const char* option :
       {"--cutoff", "--num-basis", "--radial-basis", "--cutoff-function", "--zbl-inner", "--zbl-outer",
        "--committee", "--hidden", "--layers", "--model", "--max-ell", "--hidden-ell", "--correlation",
        "--num-cutoff-basis", "--radial-mlp", "--mlp-width", "--interaction-first", "--distance-transform",
        "--pair-repulsion"})
    refuse(!o.init_weights.empty() && app.count(option) > 0,
           std::string(option) + ": cannot be combined with --init-weights, whose potential says it");
}

/// Refuses metrics that are not for the task. The labels of nodes, on which they depend, too, are read later.
void check_metrics(const TaskOptions& o) {
  const LabelType labels = has_labelled_rows(o.type) ? label_type(o.label_loss) : o.labels;
  const unsigned of = o.type == TaskType::link        ? of_links
                      : o.type == TaskType::potential ? of_atoms
                                                      : of_labels(labels);
  const bool has_known_labels = of == of_labels(labels) && labels != LabelType::automatic;
  for (const Metric metric : o.metrics)
    refuse(!is_for(metric, of),
           concat("--metric: ", name_of(metric), " is not for --task ", name_of(o.type),
                  has_known_labels ? concat(" with labels that are ", to_string(labels)) : "", ", expected ",
                  metrics_for(of)));
  const bool classes = labels == LabelType::classes || labels == LabelType::automatic;
  refuse(!classes && (o.balanced_classes || !o.class_weights.empty()),
         "--class-weights: needs --loss cross-entropy");
  refuse(!classes && o.label_smoothing > 0, "--label-smoothing: needs --loss cross-entropy");
}

/// What compares validation values needs them.
void check_evaluation(const TrainOptions& o) {
  const std::pair<const char*, bool> needing[] = {{"--stop-after", o.stop_after > 0},
                                                  {"--keep best", o.keep == KeptWeights::best},
                                                  {"--runs", o.runs > 1},
                                                  {"--splits", o.may_have_several_runs()}};
  for (const auto& [option, is_given] : needing) {
    refuse(is_given && o.eval_every == 0,
           concat(option, ": needs validation values, expected --eval-every of 1 or more"));
    refuse(is_given && o.epochs == 0 && !o.resume,
           concat(option, ": needs a training, expected --epochs of 1 or more, or --resume"));
  }
  refuse(o.keep == KeptWeights::best && o.embedding > 0,
         "--keep: best cannot be combined with --embedding, whose learnable rows have no copy");
  refuse(o.ema == 1, "--ema: is 1, expected less than 1");
  refuse(o.seed > std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(o.runs),
         concat("--runs: there are no ", o.runs, " seeds from --seed ", o.seed, " on"));
}

/// Checks what graphs with node and edge types go with. Throws CLI::ValidationError.
void check_types(const TrainOptions& o) {
  const ModelType& model = model_type(o.model.type);
  const std::string typed = o.relation.empty() ? "--category: " : "--relation: ";
  refuse(model.needs_types && !o.is_typed(),
         concat("--model: ", model.name, " needs --category or --relation"));
  refuse(o.is_typed() && o.dataset.empty(), typed + "needs a --dataset, not a generated graph");
  refuse(!o.is_typed() && !o.describe && o.found.kind == DatasetKind::hetero_directory,
         concat("--dataset: ", o.dataset,
                " has node and edge types, expected --category, the node type that has "
                "the labels, or --task link and --relation"));
  refuse(o.is_typed() && !model.has_relations,
         concat(typed, "is for graphs with node and edge types, expected --model ",
                model_types_where([](const ModelType& type) { return type.has_relations; }), ", not ",
                model.name));
}

/// Checks the fan-outs of mini-batches. Throws CLI::ValidationError.
void check_fan_outs(const TrainOptions& o) {
  refuse(!o.sample.fan_outs.empty() && std::ssize(o.sample.fan_outs) != o.model.layers,
         concat("--sample: there are ", o.sample.fan_outs.size(),
                " fan-outs, expected one for each of --layers ", o.model.layers));
  for (const auto& [name, fan_outs] : o.sample.of_relations)
    refuse(std::ssize(fan_outs) != o.model.layers,
           concat("--sample-relation: there are ", fan_outs.size(), " fan-outs of ", name,
                  ", expected one for each of --layers ", o.model.layers));
}

/// Checks the draws of mini-batches. Throws CLI::ValidationError.
void check_clusters(const TrainOptions& o) {
  const SampleOptions& s = o.sample;
  refuse(s.is_labor() && s.replace, "--sampler: labor cannot be combined with --sample-replace");
  refuse(s.is_labor() && s.by_weight, "--sampler: labor cannot be combined with --sample-by-weight");
  refuse(s.clusters != 0 && !o.category.empty(), "--clusters: cannot be combined with --category");
  refuse(s.clusters == SampleOptions::parts && o.found.kind != DatasetKind::partition_directory,
         "--clusters: parts needs a --dataset that is a partition directory");
}

/// Checks --sampler. Throws CLI::ValidationError.
void check_saint(const CLI::App& app, const TrainOptions& o) {
  const SampleOptions& s = o.sample;
  refuse(app.count("--sampler") > 0 && !s.is_saint() && s.fan_outs.empty(),
         concat("--sampler: ", name_in(samplers, s.sampler), " needs --sample"));
  if (!s.is_saint()) return;
  const std::string sampler = concat("--sampler: ", name_in(samplers, s.sampler));
  refuse(o.task.type != TaskType::node, sampler + " needs --task node");
  for (const char* option : {"--sample", "--clusters", "--mfg", "--category"})
    refuse(app.count(option) > 0, sampler + " cannot be combined with " + option);
  refuse(model_type(o.model.type).has_relations,
         concat(sampler, " cannot be combined with --model ", o.model.type));
}

/// Checks the options of the layers. Throws CLI::ValidationError.
void check_network(const CLI::App& app, const ModelDescription& m) {
  const bool is_number = m.first_residual() > 0, has_jk = m.jk != "none";
  refuse(m.residual != "none" && m.residual != "identity" && m.residual != "linear" && m.residual != "0" &&
             !(is_number && m.first_residual() <= m.layers),
         concat("--residual: '", m.residual,
                "', expected none, identity, linear or the first layer with a "
                "residual connection, 1 to --layers ",
                m.layers));
  if (!model_type(m.type).attends()) return;
  const auto& list = m.heads_of_layers;
  refuse(
      !list.empty() && std::ssize(list) != m.layers,
      concat("--heads: there are ", list.size(), " numbers, expected one for each of --layers ", m.layers));
  refuse(app.count("--out-heads") > 0 && !list.empty(),
         "--out-heads: cannot be combined with a list of --heads, whose last number says it");
  refuse(app.count("--out-heads") > 0 && has_jk, concat("--out-heads: cannot be combined with --jk ", m.jk,
                                                        ", with which the last layer has --heads"));
  std::vector<Index> side_by_side = list.empty() ? std::vector<Index>{m.heads} : list;
  if (!list.empty() && !has_jk) side_by_side.pop_back();
  for (const Index heads : side_by_side)
    refuse(m.hidden % heads != 0,
           concat("--hidden: is ", m.hidden, ", expected a multiple of --heads ", heads));
}

/// Checks what the nodes have as features. Throws CLI::ValidationError.
void check_features(const CLI::App& app, const TrainOptions& o) {
  refuse(o.embedding > 0 && o.data.sparse_features == SparseFeatures::yes,
         "--sparse-features: yes cannot be combined with --embedding");
  refuse(o.embedding > 0 && o.data.normalize_features,
         "--normalize-features: cannot be combined with --embedding");
  refuse(o.embedding > 0 && o.bfloat16_features && !o.is_typed(),
         "--bfloat16-features: cannot be combined with --embedding");
  for (const auto& [option, is_given] : std::initializer_list<std::pair<const char*, bool>>{
           {"--embedding", o.embedding > 0},
           {"--normalize-features", o.data.normalize_features},
           {"--category", !o.category.empty()}})
    refuse(is_given && !o.edge_means.empty(), concat("--edge-means: cannot be combined with ", option));
  refuse(app.count("--edge-means") > 0 && o.dataset.empty(),
         "--edge-means: needs a --dataset, not a generated graph");
  refuse(o.embedding > 0 && o.clip_norm > 0, "--embedding: cannot be combined with --clip-norm");
}

/// Checks the schedule of the learning rate. Throws CLI::ValidationError.
void check_schedule(const TrainOptions& o) {
  const ScheduleOptions& s = o.schedule;
  refuse(s.type == ScheduleType::plateau && s.warm_up > 0,
         "--warm-up: needs --schedule none, step or cosine, not plateau");
  refuse((s.type == ScheduleType::cosine || s.type == ScheduleType::plateau) && s.min_lr > o.lr,
         concat("--min-lr: is ", s.min_lr, ", expected at most --lr ", o.lr));
  refuse(s.type == ScheduleType::plateau && s.factor == 1,
         "--lr-factor: is 1, expected less than 1 with --schedule plateau");
  refuse(s.type == ScheduleType::cosine && o.epochs > 0 && s.warm_up >= o.epochs,
         concat("--warm-up: is ", s.warm_up, ", expected less than --epochs ", o.epochs,
                " with --schedule cosine"));
}

/// Checks what is said of the dataset. Throws CLI::ValidationError.
void check_dataset(const CLI::App& app, const TrainOptions& o, const OptionTable& table) {
  refuse(!o.data.edge_weights && o.data.fields.contains("weight"),
         "--fields: weight cannot be combined with --ignore-edge-weights");
  refuse(app.count("--fields") > 0 && o.dataset.empty(),
         "--fields: needs a --dataset, not a generated graph");
  const std::pair<const char*, std::vector<TaskType>> read_by[] = {
      {"labels train_mask val_mask test_mask", {TaskType::node}},
      {"edge_labels", {TaskType::edge}},
      {"edge_split edge_train_mask edge_val_mask edge_test_mask", {TaskType::link, TaskType::edge}}};
  for (const auto& [key, field] : o.data.fields)
    for (const auto& [keys, tasks] : read_by)
      refuse(!o.describe && formats::is_one_of(keys, key) && std::ranges::count(tasks, o.task.type) == 0,
             concat("--fields: ", key, " needs --task ",
                    joined(
                        tasks, [](TaskType task) { return name_of(task); }, " or ")));
  for (const OptionRow& row : table.rows())
    refuse(row.is_for_graph_files() && row.is_given() &&
               (o.dataset.empty() || (o.found.kind != DatasetKind::unknown && row.name() != "--split")),
           row.name() +
               ": needs a --dataset that is an edge list, another graph file or an OGB folder, not " +
               (o.dataset.empty() ? "a generated graph" : o.dataset));
  refuse(o.found.is_partitioned() && app.count("--partition") > 0,
         "--partition: " + o.dataset + " is already partitioned");
}

void check_precision(const TrainOptions& o) {
  refuse(o.bfloat16_features && sizeof(real) > sizeof(float),
         "--bfloat16-features: needs a library of single precision, not double");
  if (!o.mixed_precision) return;
  refuse(sizeof(real) > sizeof(float),
         "--precision: is mixed in a library of double precision, expected full");
  refuse(o.graph_options.reproducible, "--precision: mixed does not go with --reproducible");
}

/// Refuses what depends on the number of ranks by more than the order of sums.
void check_reproducible(const TrainOptions& o) {
  if (!o.graph_options.reproducible) return;
  refuse(o.sample.batch_per_rank,
         "--reproducible: batches of --batch-per-rank depend on the number of ranks");
  refuse(o.halo_cache_bytes > 0,
         "--reproducible: with --halo-cache-bytes, gradients have a part for each rank that keeps a row");
  refuse(o.bfloat16_features,
         "--bfloat16-features: does not go with --reproducible, whose products read reals");
}

void check_halo_format(const GraphOptions& o) {
  const std::vector<std::string> formats = allowed_halo_formats(o);
  const std::string format = to_string(o.halo_format);
  refuse(
      std::ranges::find(formats, format) == formats.end(),
      concat("--halo-format: is ", format, o.reproducible ? " with --reproducible" : " in double precision",
             ", expected ", joined(formats)));
}

}  // namespace

void check_options(const CLI::App& app, const TrainOptions& o, const OptionTable& table) {
  check_samples(o);
  check_potential(app, o);
  check_reproducible(o);
  check_metrics(o.task);
  check_evaluation(o);
  check_types(o);
  check_fan_outs(o);
  check_clusters(o);
  check_saint(app, o);
  check_network(app, o.model);
  refuse(o.predict_layer > o.model.layers, concat("--predict-layer: there is no layer ", o.predict_layer,
                                                  ", expected at most --layers ", o.model.layers));
  check_features(app, o);
  check_precision(o);
  check_halo_format(o.graph_options);
  check_schedule(o);
  check_dataset(app, o, table);
}
}  // namespace sar::tools
