/// The graph that `train` trains on, wherever it comes from.
#pragma once

#include "train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/edge_data.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/node_data.hpp>

#include <memory>
#include <string>

namespace sar::tools {

/// `edges` gets what the dataset says of them, for the tasks link and edge. Throws InputError for what cannot
/// be trained on, and for the task node when the number of classes is unknown. Collective.
NodeData load_data(const Communicator& comm, const TrainOptions& o, EdgeData& edges);

/// The dataset or built-in graph, or null where it is partitioned. Throws InputError when there is no such file. Collective.
std::unique_ptr<GraphSource> open_unpartitioned(const Communicator& comm, const TrainOptions& o,
                                                bool edge_labels = false);
/// The dataset where it is partitioned. Collective. Throws InputError as sar::load_graph.
GraphData load_partitioned(const Communicator& comm, const TrainOptions& o, const DatasetOptions& options = {});

/// Rank 0 says which ids the dataset does not say. Collective.
void warn_of_ids(const Communicator& comm, const TrainOptions& o, const NodeData& data,
                 const EdgeData& edges);

/// Checks the classes of the labels against --num-classes, and sets their number. Throws InputError when it
/// is unknown. Collective.
void set_num_classes(const Communicator& comm, const TrainOptions& o, NodeData& data);

}  // namespace sar::tools
