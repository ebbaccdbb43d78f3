#include "train_task.hpp"

#include "options.hpp"

#include <sar/core/error.hpp>

#include <algorithm>

namespace sar::tools {
namespace {

const Choices<TaskType>& task_types() {
  static const Choices<TaskType> types{
      {"node", TaskType::node}, {"link", TaskType::link}, {"edge", TaskType::edge}};
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

const Choices<EdgeLabels>& label_types() {
  static const Choices<EdgeLabels> types{{"classes", EdgeLabels::classes}, {"values", EdgeLabels::values}};
  return types;
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

}  // namespace

void add_task_option(CLI::App& app, TaskOptions& o) {
  add_choice(app, "--task", o.type, task_types(), "what is predicted");
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
  add_choice(app, "--metric", o.metric,
             {{"auc", LinkMetric::auc}, {"mrr", LinkMetric::mrr}, {"hits", LinkMetric::hits}},
             "link: validation metric that selects the best epoch");
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

std::string describe(const TaskOptions& o) {
  if (o.type == TaskType::node) return "node";
  const std::string split =
      concat(" --split-edges ", o.valid, ',', o.test, " --exclude ", name_in(exclusions(), o.exclude));
  if (o.type == TaskType::edge) return concat("edge --edge-labels ", name_in(label_types(), o.labels), split);
  return concat("link --predictor ", name_of(o.predictor), " --link-loss ", name_of(o.loss), " --negatives ",
                o.negatives, " --negatives-from ", name_in(origins(), o.negatives_from), " --eval-negatives ",
                o.eval_negatives, " --metric ", metric_names(o)[0], " --hits-k ", o.hits_k,
                o.filtered_ranks ? " --filtered-ranks" : "", split);
}

std::vector<std::string> metric_names(const TaskOptions& o) {
  if (o.type == TaskType::link) {
    std::vector<std::string> names{"auc", "mrr", concat("hits@", o.hits_k)};
    std::swap(names[0], names[static_cast<std::size_t>(o.metric)]);
    return names;
  }
  return {smaller_is_better(o) ? "rmse" : "acc"};
}

bool smaller_is_better(const TaskOptions& o) {
  return o.type == TaskType::edge && o.labels == EdgeLabels::values;
}

}  // namespace sar::tools
