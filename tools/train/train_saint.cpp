// SPDX-License-Identifier: MIT
#include "train_saint.hpp"

#include <cmath>
#include <string>

namespace sar::tools {
namespace {

/// Whether the layers of the network compute sums or means of u times the weight of the edge.
bool adds_weighted_messages(const ModelDescription& m) {
  if (m.type == "gcn") return true;
  if (m.type == "sage") return m.aggregator.empty() || m.aggregator == "mean" || m.aggregator == "gcn";
  return m.type == "gin" && (m.aggregator.empty() || m.aggregator == "sum" || m.aggregator == "mean");
}

}  // namespace

SaintOptions saint_options(const TrainOptions& o) {
  return {.method = *o.sample.saint,
          .draws = o.sample.batch_size,
          .walk_length = o.sample.walk_length,
          .batches = o.sample.saint_batches,
          .coverage = o.sample.saint_coverage,
          .scale_messages = adds_weighted_messages(o.model),
          .seed = o.seed};
}

double loss_terms(const Communicator& comm, const NodeData& data, std::span<const double> class_weights) {
  double terms = 0;
  for (std::size_t v = 0; v < data.train_mask.size(); ++v) {
    const auto row = static_cast<Index>(v);
    if (data.train_mask[row] == 0 || data.labels[row] < 0) continue;
    if (!data.targets.defined()) {
      terms += class_weights.empty() ? 1 : class_weights[static_cast<std::size_t>(data.labels[row])];
      continue;
    }
    for (Index c = 0; c < data.targets.row_size(); ++c) terms += std::isnan(data.targets.row(row)[c]) ? 0 : 1;
  }
  return comm.all_reduce(terms);
}

}  // namespace sar::tools
