/// What `train` trains for: classes of nodes, links, or labels of edges.
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
  double valid = 0.05, test = 0.1;               ///< shares of the edges, where the dataset has no split
  ExcludeEdges exclude = ExcludeEdges::reverse;  ///< with --sample
  // links
  PredictorType predictor = PredictorType::dot;
  LinkLoss loss = LinkLoss::bce;
  Index negatives = 1, eval_negatives = 50;  ///< for each edge
  Negatives negatives_from = Negatives::global;
  Index hits_k = 50;
  LinkMetric metric = LinkMetric::auc;  ///< of the best epoch
  bool filtered_ranks = false;          ///< MRR and Hits@K are those of both ends among all nodes
  // labels of edges
  EdgeLabels labels = EdgeLabels::classes;
};

/// Adds --task.
void add_task_option(CLI::App& app, TaskOptions& o);
/// Adds the options of the tasks link and edge.
void add_link_options(CLI::App& app, TaskOptions& o);

/// The names on the command line: "link", "mlp", ...
std::string name_of(TaskType type);
std::string name_of(PredictorType type);
std::string name_of(LinkLoss loss);

/// Whether the score of a pair depends on a relation.
bool has_relations(PredictorType type);

/// All that results depend on, as options: "link --predictor dot ...".
std::string describe(const TaskOptions& o);

/// What the task is evaluated by: "acc"; "auc", "mrr", "hits@50"; "rmse". The first one says which epoch is
/// the best.
std::vector<std::string> metric_names(const TaskOptions& o);

/// Whether an epoch is better than another where the first metric is smaller.
bool smaller_is_better(const TaskOptions& o);

}  // namespace sar::tools
