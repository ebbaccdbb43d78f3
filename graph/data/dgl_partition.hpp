/// Partitions that dgl.distributed.partition_graph wrote (DGL 0.7 and later), read without DGL.
///
/// DGL numbers the nodes of all types together, part after part and in a part type after type, and the edges
/// likewise; an edge belongs to the part of its destination. Here each type counts its own nodes and edges
/// from 0, in the same order.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <string>
#include <vector>

namespace sar {

/// What the partition's JSON file says.
struct DglPartition {
  /// Nodes (or edges) of one type in one part: the ids begin .. end - 1 among those of all types, and first,
  /// first + 1, ... among those of the type.
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
  /// Ends are empty where the file names the edges only ("writes", not "author:writes:paper": before
  /// DGL 1.0).
  struct EdgeType {
    std::string src_type, name, dst_type;

    [[nodiscard]] std::string canonical_name() const { return src_type + ":" + name + ":" + dst_type; }
  };
  /// Paths of the files.
  struct Part {
    std::string graph, node_data, edge_data;
  };

  std::string path;
  std::string name;
  std::vector<std::string> node_types;
  std::vector<EdgeType> edge_types;
  Ids nodes, edges;
  std::vector<Part> parts;
};

/// Reads the JSON file. Local. Throws InputError.
DglPartition read_dgl_partition(const std::string& json_path);

/// Reads the files of one part. The books are left out, and so are the types of the ends of edges that
/// neither the JSON file nor an edge of the part tells. Local. Throws InputError.
GraphData read_dgl_part(const DglPartition& partition, int part);

/// Rank p reads part p; of more parts than ranks, consecutive ones are joined. Each rank reads the files of
/// its parts and nothing else of the data.
///
/// Original ids of nodes are, where present: "orig_id" in the part's graph (DGL before 1.0); orig_nids.dgl
/// beside it (DGL's distributed partitioning); the rows of this rank in orig_node_ids.npy, or
/// `orig_node_ids.<type>.npy` when there are several types, beside the JSON (what partition_graph returns
/// with return_mapping=True, saved with NumPy); otherwise the ids of the partitioned graph. Those of edges:
/// orig_id, orig_eids.dgl, orig_edge_ids.npy or `orig_edge_ids.<edge type>.npy`.
///
/// Collective. Throws InputError, the same on every rank, for files that are missing, damaged or do not fit
/// together; more ranks than parts; original ids that are not a permutation; GraphBolt's partitions; parts
/// that are not ranges of ids.
GraphData load_dgl_partition(const Communicator& comm, const std::string& json_path);

}  // namespace sar
