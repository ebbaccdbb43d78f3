// SPDX-License-Identifier: MIT

/// Partitions that DGL wrote: the JSON file and the parts.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/message/edge_types.hpp>

#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The contents of the partition's JSON file.
struct DglPartition {
  /// Nodes (or edges) of one type in one part: ids begin to end - 1 among those of all types, and from
  /// `first` on among those of the type.
  struct Range {
    Index begin = 0, end = 0;
    int part = 0;
    std::size_t type = 0;
    Index first = 0;
  };
  /// Nodes (or edges) of all types.
  struct Ids {
    std::vector<Range> ranges;         ///< ascending, without gaps; empty ones are left out
    std::vector<PartitionBook> books;  ///< of each type, over the parts

    [[nodiscard]] Index size() const noexcept { return ranges.empty() ? 0 : ranges.back().end; }
    /// Null when there is no such id.
    [[nodiscard]] const Range* find(Index id) const;
  };
  /// The paths of a part's files.
  struct Part {
    std::string graph, node_data, edge_data;
  };

  std::string path;
  std::string name;
  std::vector<std::string> node_types;
  /// The types of the ends are empty when the file has only the name of the edge type ("writes", not
  /// "author:writes:paper"), as before DGL 1.0.
  std::vector<EdgeType> edge_types;
  Ids nodes, edges;
  std::vector<Part> parts;
};

/// Local. Reads the JSON file. Throws InputError.
DglPartition read_dgl_partition(const std::string& json_path);

// Partitions that dgl.distributed.partition_graph wrote (DGL 0.7 and later), read without DGL.
//
// DGL numbers the nodes of all types together, part after part and in a part type after type, and the edges
// likewise; an edge belongs to the part of its destination. Here each type counts its own nodes and edges
// from 0, in the same order.

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
