// SPDX-License-Identifier: MIT
#include "train_metrics.hpp"

#include "options.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/metrics.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>

namespace sar::tools {
namespace {

/// A name on the command line, a name in logs, and what the metric is for.
struct MetricRow {
  Metric metric;
  const char* name;
  const char* key;
  unsigned of;
};

constexpr std::array<MetricRow, 18> metric_rows{{
    {Metric::accuracy, "accuracy", "acc", of_classes},
    {Metric::roc_auc, "roc-auc", "auc", of_classes | of_binary | of_links},
    {Metric::average_precision, "average-precision", "average_precision", of_classes | of_binary | of_links},
    {Metric::f1, "f1", "f1", of_classes | of_binary},
    {Metric::f1_micro, "f1-micro", "f1_micro", of_classes | of_binary},
    {Metric::f1_macro, "f1-macro", "f1_macro", of_classes | of_binary},
    {Metric::rmse, "rmse", "rmse", of_values},
    {Metric::mae, "mae", "mae", of_values},
    {Metric::mse, "mse", "mse", of_values},
    {Metric::r2, "r2", "r2", of_values},
    {Metric::mrr, "mrr", "mrr", of_links},
    {Metric::hits, "hits", "hits", of_links},
    {Metric::forces_mae, "forces-mae", "forces_mae", of_atoms},
    {Metric::forces_rmse, "forces-rmse", "forces_rmse", of_atoms},
    {Metric::energy_mae, "energy-mae", "energy_mae", of_atoms},
    {Metric::energy_rmse, "energy-rmse", "energy_rmse", of_atoms},
    {Metric::stress_mae, "stress-mae", "stress_mae", of_atoms},
    {Metric::stress_rmse, "stress-rmse", "stress_rmse", of_atoms},
}};

const MetricRow& row_of(Metric metric) {
  return *std::ranges::find(metric_rows, metric, &MetricRow::metric);
}

F1 average_of(Metric metric) {
  return metric == Metric::f1 ? F1::binary : metric == Metric::f1_micro ? F1::micro : F1::macro;
}

}  // namespace

std::vector<Metric> read_metrics(const std::string& text) {
  std::vector<Metric> metrics;
  for (const std::string& given : split_text(text, ',')) {
    const auto is_named = [&](const MetricRow& row) {
      return is_name(given, row.name) || (row.metric == Metric::roc_auc && given == "auc");
    };
    const auto* found = std::ranges::find_if(metric_rows, is_named);
    if (found == metric_rows.end()) refuse_value("--metric", given, "one of " + metrics_for(~0U));
    if (std::ranges::count(metrics, found->metric) > 0)
      throw CLI::ValidationError("--metric", std::string(found->name) + " is given twice");
    metrics.push_back(found->metric);
  }
  return metrics;
}

std::string name_of(Metric metric) {
  return row_of(metric).name;
}
std::string key_of(Metric metric) {
  return row_of(metric).key;
}
std::string word_of(const std::string& key) {
  return key == "acc" ? "accuracy" : key;
}

unsigned of_labels(LabelType labels) {
  return labels == LabelType::classes  ? of_classes
         : labels == LabelType::binary ? of_binary
         : labels == LabelType::values ? of_values
                                       : of_classes | of_binary | of_values;
}

bool is_for(Metric metric, unsigned of) {
  return (row_of(metric).of & of) != 0;
}

std::string metrics_for(unsigned of) {
  std::vector<std::string> names;
  for (const MetricRow& row : metric_rows)
    if (is_for(row.metric, of)) names.emplace_back(row.name);
  return joined(names);
}

bool smaller_is_better(Metric metric) {
  return is_for(metric, of_atoms) || metric == Metric::mae || metric == Metric::mse || metric == Metric::rmse;
}

Metric default_metric(LabelType labels) {
  return labels == LabelType::values   ? Metric::rmse
         : labels == LabelType::binary ? Metric::roc_auc
                                       : Metric::accuracy;
}

double value_of(Metric metric, const Tensor& scores, const Labels& labels, std::span<const std::uint8_t> mask,
                const Communicator& comm) {
  const auto on_labels = [&](const auto& function, auto... more) {
    return labels.type == LabelType::classes ? function(scores, labels.classes, mask, more..., comm)
                                             : function(scores, labels.targets, mask, more..., comm);
  };
  switch (metric) {
    case Metric::accuracy:
      return accuracy(scores, labels.classes, mask, comm);
    case Metric::roc_auc:
      return on_labels([](const auto&... of) { return roc_auc(of...); });
    case Metric::average_precision:
      return on_labels([](const auto&... of) { return average_precision(of...); });
    case Metric::f1:
    case Metric::f1_micro:
    case Metric::f1_macro:
      return on_labels([](const auto&... of) { return f1_score(of...); }, average_of(metric));
    case Metric::mae:
      return mean_absolute_error(scores, labels.targets, mask, comm);
    case Metric::mse:
      return mean_squared_error(scores, labels.targets, mask, comm);
    case Metric::rmse:
      return root_mean_squared_error(scores, labels.targets, mask, comm);
    case Metric::r2:
      return r2_score(scores, labels.targets, mask, comm);
    case Metric::mrr:
    case Metric::hits:
    case Metric::forces_mae:
    case Metric::forces_rmse:
    case Metric::energy_mae:
    case Metric::energy_rmse:
    case Metric::stress_mae:
    case Metric::stress_rmse:
      break;
  }
  throw InputError(concat("--metric ", name_of(metric), ": is for ",
                          is_for(metric, of_atoms) ? "atoms" : "links", ", not labels"));
}

}  // namespace sar::tools
