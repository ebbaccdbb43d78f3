// SPDX-License-Identifier: MIT
#include "train_task.hpp"

#include <sar/core/error.hpp>

#include <algorithm>

namespace sar::tools {

bool has_relations(PredictorType type) {
  return type != PredictorType::dot && type != PredictorType::mlp;
}

std::string names_of(const std::vector<TaskType>& types) {
  const auto name = [](TaskType type) { return name_of(type); };
  return joined(types, name, " or ");
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
    require<InputError>(is_for(metric, of_labels(labels)), place, ": the labels are ", found,
                        ", expected --metric ", metrics_for(of_labels(labels)), ", not ", name_of(metric),
                        ", or another --loss if they are not");
  const bool weighted = o.balanced_classes || !o.class_weights.empty();
  require<InputError>(classes || !weighted, place, ": the labels are ", found,
                      ", expected no --class-weights, which are for classes");
  require<InputError>(classes || o.label_smoothing == 0, place, ": the labels are ", found,
                      ", expected no --label-smoothing, which is for classes");
}

std::vector<Metric> metrics_of(const TaskOptions& o) {
  std::vector<Metric> metrics = o.metrics;
  std::vector<Metric> usual{Metric::roc_auc, Metric::mrr, Metric::hits};
  if (o.type == TaskType::potential) {
    usual = {Metric::energy_mae, Metric::energy_rmse};
    if (o.potential.has_forces) usual.insert(usual.begin(), {Metric::forces_mae, Metric::forces_rmse});
    if (o.potential.has_stresses) usual.insert(usual.end(), {Metric::stress_mae, Metric::stress_rmse});
  } else if (o.type != TaskType::link) {
    return metrics.empty() ? std::vector{default_metric(o.labels)} : metrics;
  }
  for (const Metric metric : usual)
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
