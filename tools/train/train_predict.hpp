// SPDX-License-Identifier: MIT

/// Writes the files of `train --predict`.
#pragma once

#include "options/train_options.hpp"
#include "train_input.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <span>
#include <string>

namespace sar::tools {

/// Collective. Creates the directory before the training, so that a failure appears early.
void prepare_predictions(const Communicator& comm, const TrainOptions& o);

/// Collective. Writes the rows of nodes, edges or pairs, given by `ids`, as one array in the library's
/// precision. Throws InputError, the same on every rank, for a number that is not finite.
void write_predictions(const Communicator& comm, const std::string& path, const Tensor& rows,
                       std::span<const Index> ids);

/// Collective. Writes logits.npy [nodes, classes], labels.npy int64 [nodes] (the class with the largest
/// logit), and embeddings.npy [nodes, width of the layer]; row v belongs to original node v. With several
/// labels a node, labels.npy is float32 [nodes, T] of 0 and 1 (a positive logit); of values there is
/// values.npy [nodes], or [nodes, T], instead of both. Logits, embeddings and values have the library's
/// precision. A split that was drawn is written,
/// too: split.npy int64 [nodes], 0 training, 1 validation, 2 test, -1 none. If the dataset has no original
/// ids, row v belongs to node v of the partition, and the files are named logits.partition_order.npy and so
/// on. With `types`, logits and labels are for the category, row = id within the type, and
/// embeddings.<type>.npy has the nodes of each type. Of graph samples, there is a row for each graph.
void predict_nodes(const TrainOptions& o, Tensor scores, const Graph& graph, const NodeData& data,
                   std::span<const TypeRows> types = {});

/// Collective. Writes h [local nodes, width] as embeddings.npy [nodes, width], or with `types` as
/// embeddings.<type>.npy of each, with rows as above.
void predict_embeddings(const TrainOptions& o, const Tensor& h, const Graph& graph, const NodeData& data,
                        std::span<const TypeRows> types = {});

/// Collective. Throws InputError, the same on every rank, unless ids are 0 .. edges - 1, the rows of the
/// files.
void require_edge_ids(const Communicator& comm, const NodeData& data, std::span<const Index> ids);

/// Collective. Writes edge_logits.npy [edges, classes] and edge_labels.npy int64 [edges], or edge_values.npy
/// [edges]; row e belongs to edge e of the dataset. `numbers` [n, classes or 1]
/// belong to the edges `ids`. Without ids in the dataset, files are named as for nodes.
void predict_edges(const Communicator& comm, const TrainOptions& o, const Tensor& numbers,
                   std::span<const Index> ids, bool ids_are_original);

/// Collective. Calls write(), which writes predictions, and names files in the directory of --predict, with
/// names that predictions have, which it has not written: they may be those of an earlier run.
void with_other_files_told(const Communicator& comm, const TrainOptions& o, FunctionRef<void()> write);

}  // namespace sar::tools
