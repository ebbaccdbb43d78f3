// SPDX-License-Identifier: MIT

/// Partitions that dgl.distributed.partition_graph wrote (DGL 0.7 and later), read without DGL.
///
/// DGL numbers the nodes of all types together, part after part and in a part type after type, and the edges
/// likewise; an edge belongs to the part of its destination. Here each type counts its own nodes and edges
/// from 0, in the same order.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/sources/dgl_partition_json.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

// The files of one part of a DGL partition.

/// Local. Reads the files of one part. Books are left out, and so are the types of the ends of edges where
/// neither the JSON file nor an edge of the part tells them. Throws InputError.
GraphData read_dgl_part(const DglPartition& partition, int part);

/// Collective. Rank p reads part p; when there are more parts than ranks, each rank joins several
/// consecutive ones. A rank reads the files of its parts and no other data.
///
/// The original ids of nodes are those of the first of these that exists:
///     "orig_id" in the part's graph (DGL before 1.0)
///     orig_nids.dgl beside the part's graph (DGL's distributed partitioning)
///     orig_node_ids.npy beside the JSON, or `orig_node_ids.<type>.npy` when there are several types: what
///         partition_graph returns with return_mapping=True, saved with NumPy
///     the field "orig_id" of the nodes, which the graph had before it was partitioned
///     those of the partitioned graph; `ids_are_original` is false then, unless there is one part
/// Those of edges are found likewise: orig_id, orig_eids.dgl, orig_edge_ids.npy or
/// `orig_edge_ids.<edge type>.npy`.
///
/// Throws InputError, the same on every rank, for files that are missing, damaged or do not fit together;
/// more ranks than parts; original ids that are not a permutation; GraphBolt's partitions; parts that are
/// not ranges of ids.
GraphData load_dgl_partition(const Communicator& comm, const std::string& json_path);

}}  // namespace sar
