// SPDX-License-Identifier: MIT
#include "train_task.hpp"

#include "options.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace sar::tools {
namespace {

const Choices<TaskType>& task_types() {
  static const Choices<TaskType> types{{"node", TaskType::node},
                                       {"link", TaskType::link},
                                       {"edge", TaskType::edge},
                                       {"graph", TaskType::graph},
                                       {"potential", TaskType::potential}};
  return types;
}

const Choices<PredictorType>& predictor_types() {
  static const Choices<PredictorType> types{
      {"dot", PredictorType::dot},           {"mlp", PredictorType::mlp},
      {"distmult", PredictorType::distmult}, {"complex", PredictorType::complex},
      {"transe", PredictorType::transe},     {"rotate", PredictorType::rotate}};
  return types;
}

const Choices<LinkLoss>& link_losses() {
  static const Choices<LinkLoss> losses{
      {"bce", LinkLoss::bce}, {"margin", LinkLoss::margin}, {"infonce", LinkLoss::infonce}};
  return losses;
}

const Choices<ExcludeEdges>& exclusions() {
  static const Choices<ExcludeEdges> choices{
      {"none", ExcludeEdges::none}, {"self", ExcludeEdges::self}, {"reverse", ExcludeEdges::reverse}};
  return choices;
}

const Choices<Negatives>& origins() {
  static const Choices<Negatives> choices{{"source", Negatives::per_source}, {"global", Negatives::global}};
  return choices;
}

const Choices<LabelType>& label_types() {
  static const Choices<LabelType> types{{"classes", LabelType::classes}, {"values", LabelType::values}};
  return types;
}

const Choices<LabelLoss>& label_losses() {
  static const Choices<LabelLoss> losses{{"auto", LabelLoss::automatic},
                                         {"cross-entropy", LabelLoss::cross_entropy},
                                         {"bce", LabelLoss::bce},
                                         {"mse", LabelLoss::mse},
                                         {"mae", LabelLoss::mae}};
  return losses;
}

template <class T>
std::string name_in(const Choices<T>& choices, T value) {
  return std::ranges::find(choices, value, &std::pair<std::string, T>::second)->first;
}

void read_shares(const std::string& text, TaskOptions& o) {
  const std::size_t comma = std::min(text.find(','), text.size());
  const auto valid = to_number<double>(text.substr(0, comma));
  const auto test = to_number<double>(text.substr(std::min(comma + 1, text.size())));
  if (!valid || !test || !(*valid >= 0) || !(*test >= 0) || !(*valid + *test < 1))
    throw CLI::ValidationError("--split-edges",
                               "'" + text +
                                   "', expected two shares of 0 or more, together less than 1, such "
                                   "as 0.05,0.10");
  o.valid = *valid;
  o.test = *test;
  o.has_shares = true;
}

/// "balanced", or a weight for each class: "1,2.5,0.5".
void read_class_weights(const std::string& text, TaskOptions& o) {
  o.balanced_classes = text == "balanced";
  o.class_weights.clear();
  if (o.balanced_classes) return;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto weight = to_number<double>(std::string_view(text).substr(begin, end - begin));
    if (!weight || !(*weight >= 0) || !std::isfinite(*weight))
      throw CLI::ValidationError("--class-weights", "'" + text +
                                                        "', expected balanced, or a number of 0 or more for "
                                                        "each class, such as 1,2.5,0.5");
    o.class_weights.push_back(*weight);
    begin = end + 1;
  }
}

std::string describe_class_weights(const TaskOptions& o) {
  if (o.balanced_classes) return " --class-weights balanced";
  std::string text;
  for (const double weight : o.class_weights)
    text += concat(text.empty() ? " --class-weights " : ",", weight);
  return text;
}

/// The metrics that were named, where they differ from the default.
std::string describe_metrics(const TaskOptions& o) {
  const std::vector<Metric> metrics = metrics_of(o);
  if (metrics == std::vector<Metric>{default_metric(o.labels)} || o.metrics.empty()) return "";
  return concat(" --metric ", joined(metrics, [](Metric metric) { return name_of(metric); }));
}

}  // namespace

void add_task_options(CLI::App& app, TaskOptions& o) {
  add_choice(app, "--task", o.type, task_types(), "what is predicted");
  add_choice(app, "--loss", o.label_loss, label_losses(), "node, graph: loss; auto: by the labels");
  app.add_option_function<std::string>(
         "--class-weights", [&o](const std::string& text) { read_class_weights(text, o); },
         "node, graph: weights of the classes in the loss; balanced: all classes count the same")
      ->option_text("balanced|LIST");
  add_number(app, "--label-smoothing", o.label_smoothing,
             "node, graph: share of the loss that all classes get", 0, 1);
  app.add_option_function<std::string>(
         "--metric", [&o](const std::string& text) { o.metrics = read_metrics(text); },
         "metrics; the first selects the best epoch: accuracy, roc-auc, f1-macro, rmse, r2, ...")
      ->option_text("NAME,...");
}

void add_link_options(CLI::App& app, TaskOptions& o) {
  constexpr Index most_negatives = 1 << 20;
  const auto read = [&o](const std::string& text) { read_shares(text, o); };
  app.add_option_function<std::string>(
         "--split-edges", read, "link, edge: shares of validation and test edges, without a given split")
      ->option_text("V,T")
      ->default_str(concat(o.valid, ',', o.test));
  add_choice(app, "--exclude", o.exclude, exclusions(),
             "link, edge: edges of a sampled batch without messages");
  add_choice(app, "--predictor", o.predictor, predictor_types(), "link: score of a pair");
  add_choice(app, "--link-loss", o.loss, link_losses(), "link: loss function");
  add_number(app, "--negatives", o.negatives, "link: negative pairs for each edge", 1, most_negatives);
  add_choice(app, "--negatives-from", o.negatives_from, origins(),
             "link: negatives keep the source, or join any ends of edges");
  add_number(app, "--eval-negatives", o.eval_negatives,
             "link: negative pairs for each edge in evaluations, without given ones", 1, most_negatives);
  add_number(app, "--hits-k", o.hits_k, "link: K of Hits@K", 1);
  app.add_flag("--filtered-ranks", o.filtered_ranks,
               "link: ranks both ends of an edge among all nodes, without other true edges");
  add_choice(app, "--edge-labels", o.labels, label_types(), "edge: what labels are");
}

std::string name_of(TaskType type) {
  return name_in(task_types(), type);
}
std::string name_of(PredictorType type) {
  return name_in(predictor_types(), type);
}
bool has_relations(PredictorType type) {
  return type != PredictorType::dot && type != PredictorType::mlp;
}
std::string name_of(LinkLoss loss) {
  return name_in(link_losses(), loss);
}

std::string name_of(LabelLoss loss) {
  return name_in(label_losses(), loss);
}

std::string describe(const TaskOptions& o) {
  if (o.type == TaskType::potential) return describe(o.potential) + describe_metrics(o);
  if (has_labelled_rows(o.type))
    return concat(name_of(o.type), o.labels == LabelType::classes ? "" : " --loss " + name_of(o.label_loss),
                  describe_class_weights(o),
                  o.label_smoothing > 0 ? concat(" --label-smoothing ", o.label_smoothing) : "",
                  describe_metrics(o));
  const std::string split =
      concat(" --split-edges ", o.valid, ',', o.test, " --exclude ", name_in(exclusions(), o.exclude));
  if (o.type == TaskType::edge)
    return concat("edge --edge-labels ", name_in(label_types(), o.labels), split, describe_metrics(o));
  return concat("link --predictor ", name_of(o.predictor), " --link-loss ", name_of(o.loss), " --negatives ",
                o.negatives, " --negatives-from ", name_in(origins(), o.negatives_from), " --eval-negatives ",
                o.eval_negatives, " --metric ", metric_names(o)[0], " --hits-k ", o.hits_k,
                o.filtered_ranks ? " --filtered-ranks" : "", split);
}

LabelType label_type(LabelLoss loss) {
  switch (loss) {
    case LabelLoss::cross_entropy:
      return LabelType::classes;
    case LabelLoss::bce:
      return LabelType::binary;
    case LabelLoss::mse:
    case LabelLoss::mae:
      return LabelType::values;
    case LabelLoss::automatic:
      break;
  }
  return LabelType::automatic;
}

void resolve_labels(TaskOptions& o, LabelType labels, const std::string& place) {
  const bool classes = labels == LabelType::classes;
  o.labels = labels;
  if (o.label_loss == LabelLoss::automatic)
    o.label_loss = classes                       ? LabelLoss::cross_entropy
                   : labels == LabelType::binary ? LabelLoss::bce
                                                 : LabelLoss::mse;
  const std::string found = classes                       ? std::string("classes")
                            : labels == LabelType::binary ? concat("several labels a ", name_of(o.type))
                                                          : std::string("values");
  for (const Metric metric : o.metrics)
    require<InputError>(is_for(metric, labels), place, ": the labels are ", found, ", expected --metric ",
                        metrics_for(labels), ", not ", name_of(metric),
                        ", or another --loss if they are not");
  const bool weighted = o.balanced_classes || !o.class_weights.empty();
  require<InputError>(classes || !weighted, place, ": the labels are ", found,
                      ", expected no --class-weights, which are for classes");
  require<InputError>(classes || o.label_smoothing == 0, place, ": the labels are ", found,
                      ", expected no --label-smoothing, which is for classes");
}

std::vector<Metric> metrics_of(const TaskOptions& o) {
  std::vector<Metric> metrics = o.metrics;
  if (o.type == TaskType::potential) {
    for (const Metric metric : atom_metrics(o.potential.has_forces, o.potential.has_stresses))
      if (std::ranges::count(metrics, metric) == 0) metrics.push_back(metric);
    return metrics;
  }
  if (o.type != TaskType::link) return metrics.empty() ? std::vector{default_metric(o.labels)} : metrics;
  for (const Metric metric : {Metric::roc_auc, Metric::mrr, Metric::hits})
    if (std::ranges::count(metrics, metric) == 0) metrics.push_back(metric);
  return metrics;
}

std::vector<std::string> metric_names(const TaskOptions& o) {
  std::vector<std::string> names;
  for (const Metric metric : metrics_of(o))
    names.push_back(metric == Metric::hits ? concat("hits@", o.hits_k) : key_of(metric));
  return names;
}

bool has_class_weight(std::span<const double> class_weights, std::span<const std::int64_t> labels,
                      std::span<const std::uint8_t> mask) {
  if (class_weights.empty()) return true;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (mask[i] != 0 && labels[i] >= 0 && class_weights[static_cast<std::size_t>(labels[i])] > 0) return true;
  return false;
}

}  // namespace sar::tools
