// SPDX-License-Identifier: MIT

/// The edges of one edge type as the edges of a graph without types, whose nodes are those of the homogeneous
/// form (graph/hetero/homogeneous_form.hpp), which need not be made for that. For tasks on edges.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Local. The owners of the nodes in the homogeneous form: the nodes of a rank are there type after type.
PartitionBook book_of_form(const GraphData& graph);

/// Local. The edges of a type with ends that are global ids of the homogeneous form, and ids within the type.
/// They have no weights.
EdgeList edges_of_form(const GraphData& graph, const EdgeTypeData& type);

/// Local. This rank's edges of an edge type, with their edge_data (EdgeData); there are no features and
/// labels. The original id of a node is its id within the type plus the sizes of the types before. Takes the
/// lists of the type, which are empty afterwards. Throws InputError as load_dataset() for data of edges.
NodeData relation_data(GraphData& graph, std::size_t edge_type, const DatasetOptions& options);

// From loaded data with several types to graphs.

/// Collective. The graph of all types. Fields of nodes and edges become fields of the same names of its
/// ndata and edata (those in edge order), as sar::real. Takes the edges and their fields, which are empty
/// afterwards; the fields of nodes stay, and a program that needs no labels (category_data) any more may
/// delete them. Throws InputError, the same on every rank, as Graph.
Graph construct_hetero_graph(const Communicator& comm, GraphData& graph, const GraphOptions& options = {});

/// Local. Makes the field of weights of each edge type, as to_node_data() names it, the weights of its edges:
/// relations, samplers and blocks of the graph then have them. Returns the name of the field of each type,
/// empty for a type without weights. A field that options.fields name must be one of some type. Throws
/// InputError for values that are no weights.
std::vector<std::string> take_edge_weights(GraphData& graph, const DatasetOptions& options = {});
}}  // namespace sar
