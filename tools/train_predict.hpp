/// What `train --predict` writes.
#pragma once

#include "train_models.hpp"
#include "train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/node_data.hpp>

#include <span>

namespace sar::tools {

/// Makes the directory, so that the training does not begin when that fails. Collective.
void prepare_predictions(const Communicator& comm, const TrainOptions& o);

/// Writes logits.npy float32 [nodes, classes], labels.npy int64 [nodes] (the class with the largest logit),
/// and embeddings.npy float32 [nodes, width of the layer]; row v is that of original node v. Where the
/// dataset does not say the original ids, row v is that of node v of the partition, and the files are called
/// logits.partition_order.npy and so on. Collective.
void predict(const Communicator& comm, const TrainOptions& o, NodeClassifier& model,
             const GraphShardManager& graph, const NodeData& data, std::span<const Relations> relations);

}  // namespace sar::tools
