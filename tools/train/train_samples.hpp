// SPDX-License-Identifier: MIT

/// The data of --task graph: graph samples, and the encoder of their nodes.
#pragma once

#include "heartbeat.hpp"
#include "options/train_options.hpp"
#include "train_graph.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <optional>
#include <vector>

namespace sar::tools {

/// Rows of the nodes and edges of a batch, as the network reads them: the features, and the sum of an
/// embedding for each column of integers, which is as wide as the network.
class SampleInput : public Module {
 public:
  SampleInput(const SampleTask& task, const TrainOptions& o, Generator& gen);

  [[nodiscard]] Index width() const noexcept { return width_; }
  [[nodiscard]] Index edge_width() const noexcept { return edge_width_; }  ///< 0: edges are not read
  /// Local. [local nodes, width()].
  [[nodiscard]] Variable operator()(const SampleBatch& batch) const;
  /// Local. Of the edges: [local edges, edge_width()], or nothing.
  [[nodiscard]] std::vector<GraphRelations> edges(const SampleBatch& batch) const;

 private:
  Index width_ = 0, edge_width_ = 0;
  std::optional<CategoryEmbedding> embedding_, edge_embedding_;
};

/// Collective. Loads the graph samples of a training. The rows of TrainingGraph::data are graphs, and its
/// graph has them as nodes and no edges. Sets what the labels are in the options. Throws InputError as
/// formats::read_samples, and as prepare_split and set_outputs.
TrainingGraph load_training_samples(const Communicator& comm, TrainOptions& o, Heartbeat& heartbeat);

}  // namespace sar::tools
