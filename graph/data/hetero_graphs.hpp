/// From loaded data with several types to graphs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/hetero/hetero_graph.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. The graph of all types. Fields of nodes and edges become fields of the same names of its
/// ndata and edata (those in edge order), as sar::real. Takes the edges and their fields, which are empty
/// afterwards; the fields of nodes stay, and a program that needs no labels (category_data) any more may
/// delete them. Throws InputError, the same on every rank, as HeteroGraph.
HeteroGraph construct_hetero_graph(const Communicator& comm, GraphData& graph,
                                   const GraphOptions& options = {});

}}  // namespace sar
