/// The graph that `train` trains on, wherever it comes from.
#pragma once

#include "train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/edge_data.hpp>
#include <sar/graph/data/node_data.hpp>

namespace sar::tools {

/// `edges` gets what the dataset says of them, for the tasks link and edge. Throws InputError for what cannot
/// be trained on, and for the task node when the number of classes is unknown. Collective.
NodeData load_data(const Communicator& comm, const TrainOptions& o, EdgeData& edges);

}  // namespace sar::tools
