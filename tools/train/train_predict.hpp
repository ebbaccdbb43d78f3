/// What `train --predict` writes.
#pragma once

#include "train_input.hpp"
#include "train_models.hpp"
#include "train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/node_data.hpp>

#include <span>
#include <string>

namespace sar::tools {

/// The nodes of one type in a graph of many: some of this rank's rows.
struct PredictedNodes {
  std::string type;
  Index first_row = 0, end_row = 0;  ///< the rows of its nodes are [first_row, end_row)
  Array<Index> ids;                  ///< their original ids within the type
  bool ids_are_original = true;
  bool is_category = false;  ///< whose classes are predicted
};

/// Makes the directory, so that the training does not begin when that fails. Collective.
void prepare_predictions(const Communicator& comm, const TrainOptions& o);

/// Writes logits.npy float32 [nodes, classes], labels.npy int64 [nodes] (the class with the largest logit),
/// and embeddings.npy float32 [nodes, width of the layer]; row v is that of original node v. Where the
/// dataset does not say the original ids, row v is that of node v of the partition, and the files are called
/// logits.partition_order.npy and so on. With `types`, logits and labels are those of the category, rows by
/// id within the type, and embeddings.<type>.npy has the nodes of a type. Collective.
void predict_nodes(const Communicator& comm, const TrainOptions& o, NodeClassifier& model,
                   const GraphShardManager& graph, const NodeData& data, NodeInput& input,
                   std::span<const Relations> relations, std::span<const PredictedNodes> types = {});

/// Writes embeddings.npy float32 [nodes, width] likewise: h [local nodes, width]. Collective.
void predict_embeddings(const TrainOptions& o, const Tensor& h, const GraphShardManager& graph,
                        const NodeData& data);

/// Throws InputError, the same on every rank, unless ids are 0 .. edges - 1: --predict writes rows by them.
/// Collective.
void require_edge_ids(const Communicator& comm, const NodeData& data, std::span<const Index> ids);

/// Of the edges of the dataset, row e that of edge e: edge_logits.npy float32 [edges, classes] and
/// edge_labels.npy int64 [edges], or edge_values.npy float32 [edges]. `numbers` [n, classes or 1] are those
/// of the edges `ids`. Where the dataset does not say these, the names end as those of nodes. Collective.
void predict_edges(const Communicator& comm, const TrainOptions& o, const Tensor& numbers,
                   std::span<const Index> ids, bool ids_are_original);

}  // namespace sar::tools
