// SPDX-License-Identifier: MIT

/// The tasks of `train`: labels of nodes, link prediction, labels of edges, labels of graphs, potentials of
/// atoms.
#pragma once

#include "formats/atoms/atom_dataset.hpp"
#include "options.hpp"
#include "train_metrics.hpp"

#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/nn/atoms/potential_loss.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

enum class TaskType { node, link, edge, graph, potential };
/// All tasks; all that train networks of layers, which have many options in common; those with one graph;
/// with a batch of graphs; with a label of each node or graph; with pairs of nodes.
inline const std::vector<TaskType> all_tasks{TaskType::node, TaskType::link, TaskType::edge, TaskType::graph,
                                             TaskType::potential},
    network_tasks{TaskType::node, TaskType::link, TaskType::edge, TaskType::graph},
    one_graph_tasks{TaskType::node, TaskType::link, TaskType::edge},
    sample_tasks{TaskType::graph, TaskType::potential}, labelled_tasks{TaskType::node, TaskType::graph},
    pair_tasks{TaskType::link, TaskType::edge};

enum class PredictorType { dot, mlp, distmult, complex, transe, rotate };
enum class LinkLoss { bce, margin, infonce };
enum class LabelLoss { automatic, cross_entropy, bce, mse, mae };

/// Where the energies of single atoms come from, and the scale of the network's energies.
enum class EnergySource {
  automatic,  ///< fitted, with --init-weights kept
  fit,
  keep,      ///< those of --init-weights
  isolated,  ///< energies of structures that are one atom
  given
};

/// Weights of the terms of the loss from an epoch on.
struct WeightStage {
  int epoch = 1;
  double energy = 0, forces = 0, stress = 0;
};

/// --task potential
struct PotentialOptions {
  std::vector<std::string> files, valid_files, test_files;  ///< the first of --dataset
  std::vector<std::string> watch_files;                     ///< whose errors are watched, and nothing else
  std::string learner;                ///< directory of a PotentialLearner, after the training; empty: none
  formats::AtomLabelKeys keys;
  std::string kind_key = "config_type";        ///< key of the kind of a structure
  std::map<std::string, double> kind_weights;  ///< in the loss; of other kinds: 1
  Index graph_memory = Index{1} << 30;         ///< bytes of edges that a rank keeps
  double energy_weight = 10, forces_weight = 10, stress_weight = 10;  ///< of the terms of the loss
  std::vector<WeightStage> stages;  ///< in the order of their epochs; empty: these weights in all epochs
  EnergyError energy_error = EnergyError::per_atom;
  double huber_delta = 0;  ///< 0: squares
  EnergySource shifts = EnergySource::automatic;
  std::map<std::string, double> given_shifts;  ///< of species
  EnergySource scale = EnergySource::automatic;
  double given_scale = 0;
  std::vector<NewSpecies> new_species;  ///< beside those of --init-weights
  // known when the files have been read
  bool has_forces = false, has_stresses = false;
};

struct TaskOptions {
  TaskType type = TaskType::node;
  std::vector<Metric> metrics;  ///< the first selects the best epoch; empty: as the labels need
  // nodes and graphs
  LabelLoss label_loss = LabelLoss::automatic;
  std::vector<double> class_weights;  ///< empty: all 1
  bool balanced_classes = false;      ///< weights from the numbers of training nodes
  double label_smoothing = 0;
  // nodes, edges and graphs
  LabelType labels = LabelType::classes;  ///< of nodes and graphs: known when they have been read
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
  bool filtered_ranks = false;  ///< MRR and Hits@K rank both ends among all nodes
  // potentials
  PotentialOptions potential;
};

/// The values of --task, --predictor, --link-loss and --loss.
inline const Choices<TaskType> task_types{{"node", TaskType::node},
                                          {"link", TaskType::link},
                                          {"edge", TaskType::edge},
                                          {"graph", TaskType::graph},
                                          {"potential", TaskType::potential}};
inline const Choices<PredictorType> predictor_types{
    {"dot", PredictorType::dot},           {"mlp", PredictorType::mlp},
    {"distmult", PredictorType::distmult}, {"complex", PredictorType::complex},
    {"transe", PredictorType::transe},     {"rotate", PredictorType::rotate}};
inline const Choices<LinkLoss> link_losses{
    {"bce", LinkLoss::bce}, {"margin", LinkLoss::margin}, {"infonce", LinkLoss::infonce}};
inline const Choices<LabelLoss> label_losses{{"auto", LabelLoss::automatic},
                                             {"cross-entropy", LabelLoss::cross_entropy},
                                             {"bce", LabelLoss::bce},
                                             {"mse", LabelLoss::mse},
                                             {"mae", LabelLoss::mae}};

/// Returns "link".
inline std::string name_of(TaskType type) {
  return name_in(task_types, type);
}
/// Returns "link or edge".
std::string names_of(const std::vector<TaskType>& types);

/// Returns whether each node or each graph has a label that is predicted.
[[nodiscard]] constexpr bool has_labelled_rows(TaskType type) noexcept {
  return type == TaskType::node || type == TaskType::graph;
}

/// Returns whether pairs of nodes are scored: links, or edges, which have labels.
[[nodiscard]] constexpr bool has_pairs(TaskType type) noexcept {
  return type == TaskType::link || type == TaskType::edge;
}

/// Returns whether the dataset has many graphs, of which a batch has some.
[[nodiscard]] constexpr bool has_samples(TaskType type) noexcept {
  return type == TaskType::graph || type == TaskType::potential;
}

/// Returns whether the score of a pair depends on its relation.
bool has_relations(PredictorType type);

/// Returns the type of labels that a loss is for; `automatic`: what the data say.
LabelType label_type(LabelLoss loss);

/// Sets type and loss of the labels of nodes or graphs that have been read. Throws InputError for metrics and
/// options of the loss that are not for labels of this type. `place` begins the message.
void resolve_labels(TaskOptions& o, LabelType labels, const std::string& place);

/// Returns the metrics that are computed; the first one selects the best epoch.
std::vector<Metric> metrics_of(const TaskOptions& o);
/// Returns their names in logs: "acc"; "auc", "mrr", "hits@50"; "rmse".
std::vector<std::string> metric_names(const TaskOptions& o);

/// Local. Whether a row in the mask has a label of a class whose weight is above 0; true without class
/// weights.
[[nodiscard]] bool has_class_weight(std::span<const double> class_weights,
                                    std::span<const std::int64_t> labels, std::span<const std::uint8_t> mask);

}  // namespace sar::tools
