/// The graph that `train` trains on, wherever it comes from.
#pragma once

#include "train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/node_data.hpp>

namespace sar::tools {

/// Throws InputError for what cannot be trained on, and when the number of classes is unknown. Collective.
NodeData load_data(const Communicator& comm, const TrainOptions& o);

}  // namespace sar::tools
