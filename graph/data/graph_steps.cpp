// SPDX-License-Identifier: MIT

// A rank reads about E / P edges of 24 bytes. Each is sent once, column by column; sorting is a counting sort
// by destination and a sort of the in-edges of each node: O(E / P log(degree)) time, 16 bytes per edge.

#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/construct/edge_exchange.hpp>
#include <sar/graph/data/graph_steps.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

bool has_weights(const Communicator& comm, const EdgeList& edges) {
  return comm.all_reduce(edges.weight.empty() ? 0 : 1, ReduceOp::max) == 1;
}

/// The largest edge id of all ranks, -1 without edges. A graph that lost duplicates has gaps in its ids.
Index largest_id(const Communicator& comm, const std::string& graph, const EdgeList& edges) {
  const Index mine = edges.id.empty() ? -1 : std::ranges::max(edges.id);
  const Index largest = comm.all_reduce(mine, ReduceOp::max);
  require<InputError>(largest < Index{1} << 61, graph, ": an edge has id ", largest,
                      ", expected less than 2^61");
  return largest;
}

/// The reverse edges of a type whose ends are of two types.
EdgeTypeData reverse_type(const GraphData& graph, const EdgeTypeData& type) {
  EdgeTypeData reverse = type;
  std::swap(reverse.src_type, reverse.dst_type);
  reverse.name = "rev_" + type.name;
  reverse.first_added_id = 0;
  std::swap(reverse.edges.src, reverse.edges.dst);
  for (const EdgeTypeData& other : graph.edge_types)
    require<InputError>(other.canonical_name() != reverse.canonical_name(), graph.name, ": the edge type ",
                        reverse.canonical_name(), " is there already, expected none of this name for the ",
                        "reverse edges of ", type.canonical_name());
  return reverse;
}

/// Adds edges to a type whose ends are nodes of one type.
void add_to_type(const Communicator& comm, const DatasetOptions& options, const std::string& graph,
                 const NodeTypeData& nodes, EdgeTypeData& type) {
  const Index first_id = 1 + largest_id(comm, graph, type.edges);
  Index next_id = first_id;
  if (options.add_reverse_edges) {
    append_reverse(next_id, type.edges);
    next_id *= 2;
  }
  if (options.add_self_loops) {
    const Index first = nodes.book.begin(comm.rank());
    Array<Index> slice;
    if (nodes.original_ids.empty()) slice = consecutive(first, nodes.book.num_nodes(comm.rank()));
    append_self_loops(first, slice.empty() ? nodes.original_ids : slice, next_id,
                      has_weights(comm, type.edges), type.edges);
  }
  if (options.add_reverse_edges || options.add_self_loops)
    type.first_added_id = std::min(type.first_added_id, first_id);
}

}  // namespace

GraphData read_edges(GraphSource& source) {
  GraphData graph = source.types();
  for (std::size_t k = 0; k < graph.edge_types.size(); ++k) {
    EdgeTypeData& type = graph.edge_types[k];
    static_cast<void>(graph.node_type(type.src_type));
    static_cast<void>(graph.node_type(type.dst_type));
    type.edges = source.read_edges(k);
    type.edges.weight = {};
  }
  release_cached_memory();
  return graph;
}

void add_edges(const Communicator& comm, const DatasetOptions& options, GraphData& graph) {
  const std::size_t count = graph.edge_types.size();
  for (std::size_t k = 0; k < count; ++k) {
    EdgeTypeData& type = graph.edge_types[k];
    if (type.src_type == type.dst_type)
      add_to_type(comm, options, graph.name, graph.node_type(type.dst_type), type);
    else if (options.add_reverse_edges)
      graph.edge_types.push_back(reverse_type(graph, type));
  }
}

std::vector<PartitionBook> number_nodes(const Communicator& comm, std::vector<NodePartition> partitions,
                                        GraphData& graph) {
  std::vector<PartitionBook> books;
  for (std::size_t t = 0; t < partitions.size(); ++t) {
    NodeTypeData& nodes = graph.node_types[t];
    const PartitionBook& parts = books.emplace_back(partitions[t].book());
    const PartitionBook owners = PartitionBook::even(parts.num_parts(), comm.size());
    nodes.book = parts.joined(owners);
    nodes.original_ids.clear();
    nodes.original_ids.reserve(nodes.book.num_nodes(comm.rank()));
    for (Index part = owners.begin(comm.rank()); part < owners.end(comm.rank()); ++part) {
      const Array<Index> ids = partitions[t].original_ids(static_cast<int>(part));
      nodes.original_ids.insert(nodes.original_ids.end(), ids.begin(), ids.end());
    }
  }
  for (EdgeTypeData& type : graph.edge_types) {
    partitions[graph.place_of(type.src_type)].to_partitioned(type.edges.src);
    partitions[graph.place_of(type.dst_type)].to_partitioned(type.edges.dst);
  }
  partitions.clear();
  release_cached_memory();
  return books;
}

void send_edges(const Communicator& comm, GraphData& graph) {
  for (EdgeTypeData& type : graph.edge_types) {
    EdgeList edges = std::exchange(type.edges, {});
    exchange_edges(comm, graph.node_type(type.dst_type).book, std::move(edges), has_weights(comm, edges),
                   type.edges);
  }
  release_cached_memory();
}

void drop_edges(const Communicator& comm, const DatasetOptions& options, GraphData& graph) {
  for (EdgeTypeData& type : graph.edge_types) {
    const PartitionBook& book = graph.node_type(type.dst_type).book;
    const Index begin = book.begin(comm.rank()), end = book.end(comm.rank());
    if (type.src_type == type.dst_type && options.add_self_loops && options.remaining_self_loops)
      keep_remaining_self_loops(begin, end, type.edges);
    if (options.drop_duplicates) drop_duplicates(begin, end, type.edges);
    type.num_edges = comm.all_reduce(type.edges.size());
  }
  release_cached_memory();
}

void sort_edges(const Communicator& comm, GraphData& graph) {
  for (EdgeTypeData& type : graph.edge_types) {
    const PartitionBook& book = graph.node_type(type.dst_type).book;
    sort_edges(book.begin(comm.rank()), book.end(comm.rank()), type.edges);
  }
  release_cached_memory();
}

std::vector<Index> first_of_types(const GraphData& graph) {
  return offsets_of_sizes(graph.node_types, &NodeTypeData::num_nodes);
}

const EdgeList& homogeneous_edges(const GraphData& graph, EdgeList& all) {
  if (graph.is_homogeneous()) return graph.edge_types[0].edges;
  const std::vector<Index> first = first_of_types(graph);
  std::size_t count = 0;
  for (const EdgeTypeData& type : graph.edge_types) count += type.edges.src.size();
  all.src.reserve(count);
  all.dst.reserve(count);
  for (const EdgeTypeData& type : graph.edge_types) {
    const Index first_src = first[graph.place_of(type.src_type)],
                first_dst = first[graph.place_of(type.dst_type)];
    for (const Index node : type.edges.src) all.src.push_back(first_src + node);
    for (const Index node : type.edges.dst) all.dst.push_back(first_dst + node);
  }
  return all;
}

}}  // namespace sar
