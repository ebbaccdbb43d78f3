/// What all sources of graphs have in common: from a rank's share of the edges, in original ids, to NodeData.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/graph/partition/partition.hpp>

#include <string>

namespace sar::inline SAR_PRECISION {

/// Throws InputError for a graph without nodes or with fewer nodes than ranks.
void require_nodes_for_ranks(const std::string& name, Index num_nodes, int ranks);

/// x[v, :] /= sum(x[v, :]); a row whose sum is 0 stays as it is. Local.
void normalize_rows(Tensor& x);

/// Adds reverse edges and self loops and drops duplicates, as `options` say. The edges are with their owners;
/// new ones are numbered after all others. Needs book and original_ids; sets num_edges. Collective.
void transform_edges(const Communicator& comm, const DatasetOptions& options, NodeData& data);

/// Relabels the edges, sends them to their owners and transforms them: everything but the data of nodes.
/// `edges` as below. Collective.
NodeData distribute_edges(const Communicator& comm, const std::string& name, const NodePartition& partition,
                          EdgeList edges, const DatasetOptions& options);

/// Partitions the nodes, relabels and transforms the edges and sends them to their owners, then asks
/// `read_nodes` for the data of this rank's nodes.
///
/// `edges` is this rank's share of the E edges, with ends in original ids and ids in [0, E). `read_nodes` is
/// local and may throw. It finds original_ids in its argument and sets features, labels, masks and
/// num_classes; the largest num_classes of all ranks counts. It is called on ranks without nodes, too.
/// Collective.
NodeData distribute(const Communicator& comm, const std::string& name, Index num_nodes, EdgeList edges,
                    const DatasetOptions& options, FunctionRef<void(NodeData&)> read_nodes);

/// The same with a given partition; `options.partition` is not used.
NodeData distribute(const Communicator& comm, const std::string& name, const NodePartition& partition,
                    EdgeList edges, const DatasetOptions& options, FunctionRef<void(NodeData&)> read_nodes);

}  // namespace sar
