// SPDX-License-Identifier: MIT

/// Edges for training, validation and test of link prediction.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

struct EdgeSplitOptions {
  double valid = 0.05;  ///< the share of the edges; 0 or more, together less than 1
  double test = 0.1;
  std::uint64_t seed = 0;
};

/// In-edges of this rank's nodes; ids and weights are those of the whole graph's edges.
struct EdgeSplit {
  EdgeList train, valid, test;
};

/// Splits the edges of a graph at random into training, validation and test edges. One draw per pair of
/// nodes, keyed by their original ids, decides for all edges between them: reverse and parallel edges are in
/// the same part, so that no edge reveals another one. The split is the same for every number of ranks. Edges
/// are drawn independently, so the sizes match the shares only on average. If NodeData::ids_are_original is
/// false, the ids of the partition are used, and the split depends on the partition. Throws InputError on
/// every rank for invalid shares. Collective: requests the original ids of the sources from their owners.
EdgeSplit split_edges(const Communicator& comm, const NodeData& data, const EdgeSplitOptions& options = {});

}}  // namespace sar
