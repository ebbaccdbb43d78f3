// SPDX-License-Identifier: MIT

/// Loads the data of `train`: a dataset, a partition directory, or a generated graph.
#pragma once

#include "options/train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <array>
#include <memory>

namespace sar::tools {

/// Collective. For the tasks link and edge with edge data. Throws InputError for data without nodes to
/// train on, and for the task node as set_outputs().
NodeData load_data(const Communicator& comm, TrainOptions& o);

/// Collective. Opens the dataset or built-in graph; null for a partition directory. Throws InputError if
/// the file does not exist.
std::unique_ptr<GraphSource> open_unpartitioned(const Communicator& comm, const TrainOptions& o);
/// Collective. Loads a partition directory. Throws InputError as sar::load_graph.
GraphData load_partitioned(const Communicator& comm, const TrainOptions& o,
                           const DatasetOptions& options = {});

/// Collective. Prints, on rank 0, what is in the dataset (formats::describe_source). Throws InputError for
/// a partition.
void describe_dataset(const Communicator& comm, const TrainOptions& o);

/// Collective. Prints, on rank 0, which original ids the dataset lacks.
void warn_of_ids(const Communicator& comm, const TrainOptions& o, const NodeData& data);

/// Collective. Counts the nodes of the training, validation and test mask that have no label, which losses
/// and metrics leave out, and prints how many they are, and one of them, on rank 0.
std::array<Index, 3> warn_of_unlabelled(const Communicator& comm, const NodeData& data);

/// Collective. Draws the split of --split-nodes, or chooses the run's among several and says which one it
/// is; then requires that there is one, of a training, whose masks it compares. Prints on rank 0. Throws
/// InputError as draw_split, and for data without training nodes.
void prepare_split(const Communicator& comm, const TrainOptions& o, NodeData& data);

/// Collective. Sets the type of the labels and their loss in the options, and the number of classes or of
/// columns in the data. Throws InputError if it is unknown or contradicts --num-classes, and for options of
/// the loss and metrics that are not for these labels.
void set_outputs(const Communicator& comm, TrainOptions& o, NodeData& data);

}  // namespace sar::tools
