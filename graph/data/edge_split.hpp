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

/// A draw for each pair of nodes, keyed by their original ids, says to which part the edges between them
/// belong: both directions and parallel edges go together, so that none gives the other away. The parts are
/// the same for every number of ranks. Their sizes are about those wanted, to the deviation of independent
/// draws. Where NodeData::ids_are_original is false, the ids of the partition stand for the original ones,
/// and another partition has other parts. Collective: the original ids of the sources are asked from their
/// owners. Throws InputError, the same on every rank, for shares that are not as above.
EdgeSplit split_edges(const Communicator& comm, const NodeData& data, const EdgeSplitOptions& options = {});

}}  // namespace sar
