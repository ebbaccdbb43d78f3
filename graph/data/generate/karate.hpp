// SPDX-License-Identifier: MIT

/// The karate club, a built-in graph.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/node_data.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Zachary's karate club (J. Anthropological Research 33, 1977): 34 nodes, 78 friendships in
/// both directions. The label is 0 on the side of the instructor (node 0) and 1 on that of the officer
/// (node 33). Features are one-hot, [34, 34]. These two nodes are the training nodes, nodes 1, 3, 30 and 32
/// are for validation, the others for testing. Throws InputError for more ranks than nodes.
NodeData make_karate(const Communicator& comm, const DatasetOptions& options = {});
/// Local. Returns the same graph as a source.
std::unique_ptr<GraphSource> karate_source(const Communicator& comm);

}}  // namespace sar
