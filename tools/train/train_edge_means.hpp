/// Features of nodes made of data of their in-edges, for graphs without features of nodes.
#pragma once

#include "options/train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/node_data.hpp>

namespace sar::tools {

/// Collective. Returns the mean of the field --edge-means over the in-edges of each node of this rank,
/// [nodes, F]; 0 for a node without in-edges. Reverse edges have the data of their edges; self loops that
/// were added have none and do not count. Throws InputError, the same on every rank, if there is no such
/// field or a value is not finite.
Tensor edge_means(const Communicator& comm, const TrainOptions& o, GraphSource& source, const NodeData& data);

/// Collective. The same of a partition, whose fields have been read. Throws InputError, too, for options that
/// add reverse edges to it or drop edges.
Tensor edge_means(const Communicator& comm, const TrainOptions& o, const GraphData& partition);

}  // namespace sar::tools
