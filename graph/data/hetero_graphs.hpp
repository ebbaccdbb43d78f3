/// From loaded data with several types to graphs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/hetero/hetero_graph.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <map>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// The graph of all types. Fields of nodes and edges become fields of the same names of its ndata and edata
/// (those in edge order), as sar::real. Takes the edges and their fields, which are empty afterwards; the
/// fields of nodes stay, and a program that needs no labels (category_data) any more may delete them.
/// Collective. Throws InputError, the same on every rank, as HeteroGraph.
HeteroGraph construct_hetero_graph(const Communicator& comm, GraphData& graph,
                                   const GraphOptions& options = {});

/// The graphs of construct_hetero_graph by the names of their edge types ("writes"), or canonical names
/// ("author:writes:paper") where several types share the name: the input of HeteroGraphConv. Collective.
/// Throws as construct_hetero_graph.
std::map<std::string, GraphShardManager> construct_hetero_graphs(const Communicator& comm, GraphData& graph,
                                                                 const GraphOptions& options = {});

}}  // namespace sar
