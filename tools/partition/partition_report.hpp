// SPDX-License-Identifier: MIT

/// What `partition` says about its parts: a table for people, JSON for programs.
#pragma once

#include "source_widths.hpp"
#include "train/options/train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/partition_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace sar::tools {

/// What partitioning took.
struct Measured {
  double seconds = 0;               ///< of the slowest rank
  std::uint64_t max_rss_bytes = 0;  ///< of the largest rank
};

/// Collective; `seconds` are those of this rank.
Measured measured(const Communicator& comm, double seconds);

/// What a training on the parts needs, as `plan` predicts it.
struct PredictedTraining {
  ModelDescription model;          ///< with the widths of the graph
  bool is_sparse = false;          ///< the features are sparse rows
  std::vector<double> bytes = {};  ///< at the peak of a step on each part
  double sent_bytes = 0;           ///< by all ranks together in a training step after the first
  Index halo_row_bytes = 0;  ///< of a row of the features, or of their product with the weights if sparse

  [[nodiscard]] double most_bytes() const { return *std::ranges::max_element(bytes); }
};

/// Local. Trains on a small generated graph, with one type of nodes and edges.
PredictedTraining predict_training(const PartitionReport& report, const TrainOptions& o,
                                   const Widths& widths);

/// Local. Without a prediction for a graph with several types, for which there is none.
void print_report(const PartitionReport& report, const PredictedTraining* predicted,
                  const Measured& measured);

/// Local. Throws InputError when the file cannot be written.
void write_report(const std::string& file, const PartitionReport& report,
                  const PartitionGraphOptions& options, const PredictedTraining* predicted,
                  const Measured& measured);

}  // namespace sar::tools
