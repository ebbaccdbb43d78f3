// SPDX-License-Identifier: MIT

/// From loaded data with several types to graphs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/hetero/hetero_graph.hpp>

#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. The graph of all types. Fields of nodes and edges become fields of the same names of its
/// ndata and edata (those in edge order), as sar::real. Takes the edges and their fields, which are empty
/// afterwards; the fields of nodes stay, and a program that needs no labels (category_data) any more may
/// delete them. Throws InputError, the same on every rank, as HeteroGraph.
HeteroGraph construct_hetero_graph(const Communicator& comm, GraphData& graph,
                                   const GraphOptions& options = {});

/// Local. Makes the field of weights of each edge type, as to_node_data() names it, the weights of its edges:
/// relations, samplers and blocks of the graph then have them. Returns the name of the field of each type,
/// empty for a type without weights. A field that options.fields name must be one of some type. Throws
/// InputError for values that are no weights.
std::vector<std::string> take_edge_weights(GraphData& graph, const DatasetOptions& options = {});
}}  // namespace sar
