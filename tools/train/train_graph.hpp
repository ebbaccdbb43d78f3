// SPDX-License-Identifier: MIT

/// The graph of a training, with the data that the steps read.
#pragma once

#include "heartbeat.hpp"
#include "options/train_options.hpp"
#include "train_edges.hpp"
#include "train_input.hpp"
#include "train_predict.hpp"
#include "train_structures.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sar::tools {

/// The graphs of --task graph.
struct SampleTask {
  std::shared_ptr<const GraphSamples> samples;  ///< of this rank; of structures, PotentialTask::sizes
  std::vector<Index> categories;                ///< of each column of integer node features; empty: none
  std::vector<Index> edge_categories;           ///< the same of edge features, if they are used
  Index num_nodes = 0, num_edges = 0;           ///< of all graphs of all ranks
};

struct TrainingGraph {
  /// Typed graph: of the homogeneous form, with labels of the category only. Graph samples: a row each.
  NodeData data;
  EdgeTask edges = {};
  Graph graph;
  std::vector<GraphRelations> relations = {};   ///< one element, or none if the model has no relations
  std::vector<TypeRows> node_types = {};        ///< of a typed graph; otherwise the input is data.features or
  Variable features = {};                       ///< these, with --bfloat16-features
  Array<std::int32_t> clusters = {};            ///< of each node of this rank, for --clusters
  ModelDescription model;                       ///< including the numbers of types
  std::string types = {};                       ///< node and edge types, for messages
  std::array<Index, 3> unlabelled =
      {};  ///< nodes, edges or graphs of training, validation and test without a label
  std::optional<SampleTask> samples = {};       ///< of --task graph and potential
  std::optional<PotentialTask> potential = {};  ///< of --task potential

  std::optional<NodeData> category = {};  ///< of a typed graph: the labels and splits of --category

  // of one run
  std::unique_ptr<NodeInput> input = {};
  Generator gen = Generator(0);  ///< draws the parameters

  /// Collective. Makes the input and the generator of the run with these options.
  void start_run(const TrainOptions& o);
  /// What has the splits.
  [[nodiscard]] const NodeData& labelled() const { return category ? *category : data; }
  /// Collective. Chooses or draws the split of the run with these options.
  void take_split(const TrainOptions& o);
};

/// Collective. Generates edge types for a model with relations; for built-in graphs they depend on the
/// labels.
std::vector<GraphRelations> generate_relations(const Graph& graph, const NodeData& data,
                                               const TrainOptions& o);

/// Collective. Loads the graph of a training, a typed one in its homogeneous form, and starts the run of
/// these options, to which it adds what the labels of the nodes are. Throws InputError as load_data or, for
/// a typed graph, as load_graph and category_data, and if the model or the task does not support types.
TrainingGraph load_training_graph(const Communicator& comm, TrainOptions& o, Heartbeat& heartbeat);

/// Collective. Returns the training on graph samples, whose rows are those of `data`, and starts its run.
TrainingGraph train_on_samples(const Communicator& comm, const TrainOptions& o, NodeData data,
                               SampleTask samples);

// Checks before a training that it fits in memory. Each throws InputError, the same on every rank.

/// Collective. Parameters and rows of the model `m`.
void require_memory_of_model(const Communicator& comm, const TrainOptions& o, const ModelDescription& m,
                             const NodeData& data, Index in_feats, Index num_classes, Index num_types);

/// Collective. The negative pairs of a step, and the scores of an evaluation.
void require_memory_of_pairs(const Communicator& comm, const TrainOptions& o, const EdgeTask& edges);

}  // namespace sar::tools
