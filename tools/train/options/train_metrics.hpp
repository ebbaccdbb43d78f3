// SPDX-License-Identifier: MIT

/// The metrics of `train`: their names, and their values on one split.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/data/dataset_options.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

enum class Metric {
  accuracy,
  roc_auc,
  average_precision,
  f1,
  f1_micro,
  f1_macro,
  rmse,
  mae,
  mse,
  r2,
  mrr,
  hits,
  forces_mae,
  forces_rmse,
  energy_mae,
  energy_rmse,
  stress_mae,
  stress_rmse
};

/// Reads "f1-macro,accuracy". Throws CLI::ValidationError.
std::vector<Metric> read_metrics(const std::string& text);

/// Returns the name on the command line: "f1-macro".
std::string name_of(Metric metric);
/// Returns the name in logs, in "val_acc" for example.
std::string key_of(Metric metric);
/// Return "roc-auc, average-precision, ...": those that labels of this type, links or atoms can have,
/// and all.
std::string metrics_for(LabelType labels);
std::string metrics_for_links();
std::string metrics_for_atoms();
std::string all_metrics();

[[nodiscard]] bool is_for(Metric metric, LabelType labels);
[[nodiscard]] bool is_for_links(Metric metric);
[[nodiscard]] bool is_for_atoms(Metric metric);
[[nodiscard]] bool smaller_is_better(Metric metric);

/// What a metric of atoms measures.
struct AtomMetric {
  std::size_t label;  ///< 0: energies, 1: forces, 2: stresses
  bool is_rmse;       ///< root of the mean square; otherwise mean absolute error
};
AtomMetric atom_metric(Metric metric);
/// Returns the metrics of data that have these labels besides energies.
std::vector<Metric> atom_metrics(bool forces, bool stresses);

/// Returns the metric that is used if none is named.
Metric default_metric(LabelType labels);

/// Labels of nodes or edges: classes, or targets [n, T].
struct Labels {
  LabelType type = LabelType::classes;
  std::span<const std::int64_t> classes;
  Tensor targets;
};

/// Collective. Returns the metric of scores [n, C or T] on the rows of a mask; NaN if none has a label. The
/// metric is one for this type of labels.
double value_of(Metric metric, const Tensor& scores, const Labels& labels, std::span<const std::uint8_t> mask,
                const Communicator& comm);

}  // namespace sar::tools
