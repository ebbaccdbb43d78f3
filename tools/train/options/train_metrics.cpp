// SPDX-License-Identifier: MIT
#include "train_metrics.hpp"

#include "options.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/metrics.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <functional>

namespace sar::tools {
namespace {

/// A name on the command line, a name in logs, and what the metric is for.
struct MetricRow {
  Metric metric;
  const char* name;
  const char* key;
  bool classes, binary, values, links, atoms;
};

constexpr bool yes = true, no = false;
constexpr std::array<MetricRow, 18> metric_rows{{
    {Metric::accuracy, "accuracy", "acc", yes, no, no, no, no},
    {Metric::roc_auc, "roc-auc", "auc", yes, yes, no, yes, no},
    {Metric::average_precision, "average-precision", "average_precision", yes, yes, no, yes, no},
    {Metric::f1, "f1", "f1", yes, yes, no, no, no},
    {Metric::f1_micro, "f1-micro", "f1_micro", yes, yes, no, no, no},
    {Metric::f1_macro, "f1-macro", "f1_macro", yes, yes, no, no, no},
    {Metric::rmse, "rmse", "rmse", no, no, yes, no, no},
    {Metric::mae, "mae", "mae", no, no, yes, no, no},
    {Metric::mse, "mse", "mse", no, no, yes, no, no},
    {Metric::r2, "r2", "r2", no, no, yes, no, no},
    {Metric::mrr, "mrr", "mrr", no, no, no, yes, no},
    {Metric::hits, "hits", "hits", no, no, no, yes, no},
    {Metric::forces_mae, "forces-mae", "forces_mae", no, no, no, no, yes},
    {Metric::forces_rmse, "forces-rmse", "forces_rmse", no, no, no, no, yes},
    {Metric::energy_mae, "energy-mae", "energy_mae", no, no, no, no, yes},
    {Metric::energy_rmse, "energy-rmse", "energy_rmse", no, no, no, no, yes},
    {Metric::stress_mae, "stress-mae", "stress_mae", no, no, no, no, yes},
    {Metric::stress_rmse, "stress-rmse", "stress_rmse", no, no, no, no, yes},
}};

const MetricRow& row_of(Metric metric) {
  return *std::ranges::find(metric_rows, metric, &MetricRow::metric);
}

std::string names_where(const std::function<bool(const MetricRow&)>& is_listed) {
  std::vector<std::string> names;
  for (const MetricRow& row : metric_rows)
    if (is_listed(row)) names.emplace_back(row.name);
  return joined(names);
}

F1 average_of(Metric metric) {
  return metric == Metric::f1 ? F1::binary : metric == Metric::f1_micro ? F1::micro : F1::macro;
}

}  // namespace

std::vector<Metric> read_metrics(const std::string& text) {
  std::vector<Metric> metrics;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string given = text.substr(begin, end - begin);
    begin = end + 1;
    const auto is_named = [&](const MetricRow& row) {
      return is_name(given, row.name) || (row.metric == Metric::roc_auc && given == "auc");
    };
    const auto* found = std::ranges::find_if(metric_rows, is_named);
    if (found == metric_rows.end())
      throw CLI::ValidationError("--metric", "'" + given + "', expected one of " + all_metrics());
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
std::string metrics_for(LabelType labels) {
  return names_where([&](const MetricRow& row) { return is_for(row.metric, labels); });
}
std::string metrics_for_links() {
  return names_where([](const MetricRow& row) { return row.links; });
}

std::string metrics_for_atoms() {
  return names_where([](const MetricRow& row) { return row.atoms; });
}

std::string all_metrics() {
  return names_where([](const MetricRow&) { return true; });
}

bool is_for(Metric metric, LabelType labels) {
  const MetricRow& row = row_of(metric);
  return labels == LabelType::classes  ? row.classes
         : labels == LabelType::binary ? row.binary
         : labels == LabelType::values ? row.values
                                       : row.classes || row.binary || row.values;
}
bool is_for_links(Metric metric) {
  return row_of(metric).links;
}
bool is_for_atoms(Metric metric) {
  return row_of(metric).atoms;
}
AtomMetric atom_metric(Metric metric) {
  const bool energy = metric == Metric::energy_mae || metric == Metric::energy_rmse;
  const bool forces = metric == Metric::forces_mae || metric == Metric::forces_rmse;
  return {.label = energy   ? 0U
                   : forces ? 1U
                            : 2U,
          .is_rmse = metric == Metric::energy_rmse || metric == Metric::forces_rmse ||
                     metric == Metric::stress_rmse};
}
std::vector<Metric> atom_metrics(bool forces, bool stresses) {
  std::vector<Metric> metrics{Metric::energy_mae, Metric::energy_rmse};
  if (forces) metrics.insert(metrics.begin(), {Metric::forces_mae, Metric::forces_rmse});
  if (stresses) metrics.insert(metrics.end(), {Metric::stress_mae, Metric::stress_rmse});
  return metrics;
}
bool smaller_is_better(Metric metric) {
  return is_for_atoms(metric) || metric == Metric::mae || metric == Metric::mse || metric == Metric::rmse;
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
  throw InputError(concat("--metric ", name_of(metric), ": is for ", is_for_atoms(metric) ? "atoms" : "links",
                          ", not labels"));
}

}  // namespace sar::tools
