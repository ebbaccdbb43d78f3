// SPDX-License-Identifier: MIT

/// The metrics of `train`: their names, and their values on one split.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/data/dataset_options.hpp>

#include <array>
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
/// Returns a name in logs as messages have it: "accuracy" for "acc".
std::string word_of(const std::string& key);
/// What metrics are of. Bits, because a metric may be of several.
inline constexpr unsigned of_classes = 1, of_binary = 2, of_values = 4, of_links = 8, of_atoms = 16;
/// Returns the bit of labels of this type; of `automatic`, those of all labels.
unsigned of_labels(LabelType labels);
[[nodiscard]] bool is_for(Metric metric, unsigned of);
/// Returns "roc-auc, average-precision, ...": those that are for one of these.
std::string metrics_for(unsigned of);

[[nodiscard]] bool smaller_is_better(Metric metric);

/// Metrics of energies, forces and stresses: of each the mean absolute error, then the root of the mean
/// square.
inline constexpr std::array atom_metrics{Metric::energy_mae,  Metric::energy_rmse, Metric::forces_mae,
                                         Metric::forces_rmse, Metric::stress_mae,  Metric::stress_rmse};

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
