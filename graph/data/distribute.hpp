/// The common way of all sources of graphs: from "my share of the edges, in original ids" to NodeData.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/data/dataset.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/graph/partition/partition.hpp>

#include <string>

namespace sar {

/// Throws InputError for a graph without nodes or with fewer nodes than ranks.
void require_nodes_for_ranks(const std::string& name, Index num_nodes, int ranks);

/// x[v, :] /= sum(x[v, :]); a row whose sum is 0 stays as it is. Local.
void normalize_rows(Tensor& x);

/// Reverse edges, self loops and duplicates, as `options` say, of edges that are with their owners; ids count
/// from the number of all edges on. Needs book and original_ids; sets num_edges. Collective.
void transform_edges(const Communicator& comm, const DatasetOptions& options, NodeData& data);

/// Relabels edges, brings them to their owners and transforms them; everything but the data of nodes.
/// `edges` as below. Collective.
NodeData distribute_edges(const Communicator& comm, const std::string& name, const NodePartition& partition,
                          EdgeList edges, const DatasetOptions& options);

/// Partitions, relabels and transforms the edges and brings them to their owners, then asks `read_nodes` for
/// the data of this rank's nodes.
///
/// `edges` is this rank's share of the E edges, ends in original ids, ids in [0, E). `read_nodes` is local
/// and may throw: it finds original_ids in its argument and sets features, labels, the masks, and num_classes
/// as far as it is known here (the maximum over the ranks counts). A rank without nodes is served like the
/// others. Collective.
NodeData distribute(const Communicator& comm, const std::string& name, Index num_nodes, EdgeList edges,
                    const DatasetOptions& options, FunctionRef<void(NodeData&)> read_nodes);

/// The same with a partitioning at hand; `options.partition` is not used.
NodeData distribute(const Communicator& comm, const std::string& name, const NodePartition& partition,
                    EdgeList edges, const DatasetOptions& options, FunctionRef<void(NodeData&)> read_nodes);

}  // namespace sar
