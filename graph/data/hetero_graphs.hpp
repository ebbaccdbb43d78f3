/// Heterogeneous graphs: one sharded graph for each edge type.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <map>
#include <string>

namespace sar::inline SAR_PRECISION {

/// The graph of each edge type, by the type's name ("writes"), or its canonical name ("author:writes:paper")
/// where several types share the name: the input of HeteroGraphConv. Edge fields become fields of the graph's
/// edata, in edge order, as sar::real. Takes the edges and their fields, which are empty afterwards.
/// Collective. Throws InputError, the same on every rank, as GraphShardManager.
std::map<std::string, GraphShardManager> construct_hetero_graphs(const Communicator& comm, GraphData& graph,
                                                                 const GraphOptions& options = {});

}  // namespace sar
