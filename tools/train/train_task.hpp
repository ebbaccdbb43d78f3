/// The tasks of `train`: node classification, link prediction, edge labels.
#pragma once

#include <sar/graph/sampling/edge_data_loader.hpp>

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sar::tools {

enum class TaskType { node, link, edge };
enum class PredictorType { dot, mlp, distmult, complex, transe, rotate };
enum class LinkLoss { bce, margin, infonce };
enum class LinkMetric { auc, mrr, hits };
enum class EdgeLabels { classes, values };

struct TaskOptions {
  TaskType type = TaskType::node;
  // links and labels of edges
  double valid = 0.05, test = 0.1;               ///< fractions of the edges, if the dataset has no split
  bool has_shares = false;                       ///< whether they are given
  ExcludeEdges exclude = ExcludeEdges::reverse;  ///< with --sample: edges excluded from messages
  // links
  PredictorType predictor = PredictorType::dot;
  LinkLoss loss = LinkLoss::bce;
  Index negatives = 1, eval_negatives = 50;  ///< per edge
  Negatives negatives_from = Negatives::global;
  Index hits_k = 50;
  LinkMetric metric = LinkMetric::auc;  ///< metric that selects the best epoch
  bool filtered_ranks = false;          ///< MRR and Hits@K rank both ends among all nodes
  // labels of edges
  EdgeLabels labels = EdgeLabels::classes;
};

/// Adds --task.
void add_task_option(CLI::App& app, TaskOptions& o);
/// Adds the options of the tasks link and edge.
void add_link_options(CLI::App& app, TaskOptions& o);

/// Names on the command line: "link", "mlp", ...
std::string name_of(TaskType type);
std::string name_of(PredictorType type);
std::string name_of(LinkLoss loss);

/// Returns whether the score of a pair depends on its relation.
bool has_relations(PredictorType type);

/// Returns the settings that results depend on, as options: "link --predictor dot ...".
std::string describe(const TaskOptions& o);

/// Returns the metrics of the task: "acc"; "auc", "mrr", "hits@50"; "rmse". The first one selects the best
/// epoch.
std::vector<std::string> metric_names(const TaskOptions& o);

/// Returns whether a smaller value of the first metric is better.
bool smaller_is_better(const TaskOptions& o);

}  // namespace sar::tools
