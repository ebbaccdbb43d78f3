// SPDX-License-Identifier: MIT

/// Partitions a graph once for many trainings: from any source of a graph, homogeneous or not, to a partition
/// directory.
#pragma once

#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/parts/part_sizes.hpp>
#include <sar/graph/data/parts/partition_graph_options.hpp>

#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Assigns the nodes of the source's graph to parts, orders them inside the parts and writes the partition
/// directory `out_dir` (partition_directory.hpp) with the node data and edge data of the source, and the
/// names of its nodes if they have any. The numbers of ranks and of parts are independent: rank q of Q writes
/// the parts that PartitionBook::even(parts, Q) gives it.
///
/// Memory of a rank, with edges / Q and nodes / Q on each: 48 bytes an edge, 8 to 24 bytes a node, at most
/// about 32 bytes for each node that its edges come from or go to, and the edges (24 bytes each) and the data
/// of one part while it is written; with several types, 16 bytes an edge more. metis also gathers the graph
/// on rank 0. The directory depends on the source and the options, and for metis, ldg and scotch also on Q.
///
/// The directory gets its name when it is complete; a failure leaves nothing behind. Collective; source and
/// options are the same on every rank. Throws InputError, the same on every rank, when `out_dir` exists or
/// cannot be written, for fewer parts than 1, and what the source and assign_nodes throw.
PartitionReport partition_graph(GraphSource& source, const std::string& out_dir,
                                const PartitionGraphOptions& options,
                                PartitionProgress progress = no_progress);

/// Collective. The report of partition_graph, without a directory: how large parts would be. The memory of
/// the edges and of the nodes is the same. Throws InputError as partition_graph, but for `out_dir`.
PartitionReport count_parts(GraphSource& source, const PartitionGraphOptions& options);

}}  // namespace sar
