/// The steps from a source to the parts of its graph, which partition_graph and load_graph share.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/parts/partition_graph_options.hpp>
#include <sar/graph/partition/node_partition.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The global ids of all nodes of one type.
struct Numbering {
  PartitionBook parts;        ///< the ids of each part
  PartitionBook ranks;        ///< the ids of each rank, which has several parts
  Array<Index> original_ids;  ///< the original ids of this rank's ids
};

/// The graph at the ranks that have its parts.
struct DistributedGraph {
  /// A type of edges and where its edges come from.
  struct Relation {
    std::size_t source;     ///< the type's place in the source
    std::size_t src, dst;   ///< the places of its types of nodes
    bool reversed = false;  ///< its edges are the reverse edges of the source's
    bool own = false;       ///< both ends are of one type: reverse edges and self loops are added to it
  };

  SourceTypes types;  ///< after the transforms: with the relations of reverse edges
  std::vector<Relation> relations;
  std::vector<int> owned_parts;  ///< of this rank, increasing
  std::vector<Numbering> nodes;  ///< by type
  std::vector<EdgeList> edges;   ///< by type: the in-edges of this rank's nodes, in global ids
  std::vector<Index> num_edges;  ///< by type, of the whole graph; since they were sorted
};

/// Reads the edges, transforms them, divides the nodes and sends the edges to their owners. `divide` says how
/// the nodes of the types are divided, from the edges of all types in original ids. Collective.
using DivideNodes = FunctionRef<std::vector<NodePartition>(const SourceTypes& types, const EdgeList& edges)>;
DistributedGraph distribute_graph(GraphSource& source, const PartitionGraphOptions& options,
                                  DivideNodes divide, PartitionProgress progress);

/// Sorts the edges by destination, source and id; drops what remaining_self_loops and drop_duplicates do not
/// keep. Collective.
void sort_edges(const Communicator& comm, const PartitionGraphOptions& options, DistributedGraph& graph,
                PartitionProgress progress);

/// The first number of each type of nodes in the homogeneous form, and the number of all nodes. Local.
std::vector<Index> first_of_types(const SourceTypes& types);

/// The partition of each type, from the part of each node of this rank's slice of the homogeneous form.
/// Collective.
std::vector<NodePartition> partition_of_types(const Communicator& comm, std::span<const Index> first_of_type,
                                              Array<std::int32_t> part_of, int parts);

/// Renumbers the nodes of each part in their locality_order. Collective.
void order_nodes(const Communicator& comm, DistributedGraph& graph);

/// Positions of the edges whose destinations are nodes of a part, in a list ordered by destination.
struct Range {
  std::size_t begin, end;
};
Range edges_of_part(const EdgeList& edges, const PartitionBook& parts, int part);

/// The edges of a part, of each type, which are taken from the graph where it is the rank's `last` part.
/// Local.
std::vector<EdgeList> take_edges_of_part(DistributedGraph& graph, int part, bool last);

/// The nodes and in-edges of a part, without their data; of part -1 the types only. Local.
GraphData graph_of_part(const GraphSource& source, const DistributedGraph& graph, int part,
                        std::vector<EdgeList> edges, const PartitionGraphOptions& options);

/// Reads the data of the nodes and in-edges of a part. Collective.
void read_part_data(GraphSource& source, const DistributedGraph& graph, const PartitionGraphOptions& options,
                    GraphData& part);

}}  // namespace sar
