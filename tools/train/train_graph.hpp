/// The graph that `train` trains on, with everything that the steps read of it.
#pragma once

#include "relations.hpp"
#include "train_edges.hpp"
#include "train_input.hpp"
#include "train_options.hpp"
#include "train_predict.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sar::tools {

struct TrainingGraph {
  NodeData data;  ///< of a graph of many types: of its homogeneous form, with the labels of the category only
  EdgeTask edges;
  GraphShardManager graph;
  std::vector<Relations> relations;  ///< one, or none where the model needs none
  std::unique_ptr<NodeInput> input;
  ModelOptions model;                           ///< with the numbers of types
  Generator gen;                                ///< of the parameters that are not made yet
  std::vector<PredictedNodes> node_types = {};  ///< whose rows --predict writes; none: all nodes
  std::string types = {};                       ///< for people: node and edge types
};

/// The graph in its homogeneous form; messages of rgcn are averaged by type of edge. Throws InputError as
/// load_graph and category_data, and when the model or the task does not fit. Collective.
TrainingGraph load_typed_graph(const Communicator& comm, const TrainOptions& o);

}  // namespace sar::tools
