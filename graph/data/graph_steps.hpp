// SPDX-License-Identifier: MIT

/// The steps from a source to a graph whose edges are with the owners of their destinations:
///
///     GraphData graph = read_edges(source);
///     add_edges(comm, options, graph);
///     number_nodes(comm, partitions, graph);    // partitions: of each node type
///     send_edges(comm, graph);
///     drop_edges(comm, options, graph);
///     read_columns(source, options, graph);     // columns.hpp
///
/// The partitions may be made before or after add_edges. A graph that is partitioned already leaves out
/// read_edges and number_nodes. Each step gives the memory back that it no longer needs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/partition/node_partition.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. This rank's share of the edges of each type of the source, without data. Ids are original
/// ids; original_ids is empty. An edge is on any rank.
GraphData read_edges(GraphSource& source);

/// Adds reverse edges and self loops, numbered after all others; new edges are on the rank of the old edge or
/// of the node. An edge type between two types of nodes gets no self loops, and its reverse edges are a new
/// type rev_NAME with the same ids. Collective; throws InputError when there is a type of this name.
void add_edges(const Communicator& comm, const DatasetOptions& options, GraphData& graph);

/// Collective. Replaces original ids by global ids; the parts of a rank are PartitionBook::even(parts,
/// ranks). Returns the books of the parts, by node type.
std::vector<PartitionBook> number_nodes(const Communicator& comm, std::vector<NodePartition> partitions,
                                        GraphData& graph);

/// Collective. Sends the edges, with their weights if there are any, to the owners of their destinations.
void send_edges(const Communicator& comm, GraphData& graph);

/// Collective. Drops what remaining_self_loops and drop_duplicates do not keep, and counts the edges. Each
/// rank has all in-edges of its nodes.
void drop_edges(const Communicator& comm, const DatasetOptions& options, GraphData& graph);

/// Local. Sorts the edges by destination, source and id.
void sort_edges(const Communicator& comm, GraphData& graph);

/// Local. The first number of each type of nodes in the homogeneous form, and the number of all nodes.
std::vector<Index> first_of_types(const GraphData& graph);

/// Local. The ends of the edges of all types in the homogeneous form: the graph's own edges if it has one
/// type, otherwise `all`, which is filled.
const EdgeList& homogeneous_edges(const GraphData& graph, EdgeList& all);

}}  // namespace sar
