#include <sar/comm/rows/replace_ids.hpp>
#include <sar/core/error.hpp>
#include <sar/core/half.hpp>
#include <sar/graph/construct/edge_exchange.hpp>
#include <sar/graph/data/parts/partition_steps.hpp>
#include <sar/graph/partition/node_order.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

using Relation = DistributedGraph::Relation;

/// The types after the transforms. An edge type between different types of nodes gets its reverse edges as
/// another one, called rev_NAME.
void plan_types(GraphSource& source, const PartitionGraphOptions& options, DistributedGraph& graph) {
  graph.types = source.types();
  auto& types = graph.types.edges;
  const std::size_t count = types.size();
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t src = graph.types.node_type(types[k].src_type),
                      dst = graph.types.node_type(types[k].dst_type);
    graph.relations.push_back({.source = k, .src = src, .dst = dst, .own = src == dst});
  }
  for (std::size_t k = 0; k < count && options.add_reverse_edges; ++k) {
    const Relation& relation = graph.relations[k];
    if (relation.own) continue;
    SourceEdges reverse = types[k];
    std::swap(reverse.src_type, reverse.dst_type);
    reverse.name = "rev_" + reverse.name;
    for (const SourceEdges& other : types)
      require<InputError>(other.canonical_name() != reverse.canonical_name(), source.name(),
                          ": the edge type ", reverse.canonical_name(),
                          " is there already, expected none of this name for the ", "reverse edges of ",
                          types[k].canonical_name());
    types.push_back(std::move(reverse));
    graph.relations.push_back({.source = k, .src = relation.dst, .dst = relation.src, .reversed = true});
  }
}

/// This rank's share of the edges of each type, in original ids and with all transforms but drop_duplicates
/// and remaining_self_loops: only the owner of a node has all of its in-edges. Collective.
std::vector<EdgeList> read_transformed_edges(GraphSource& source, const DistributedGraph& graph,
                                             const PartitionGraphOptions& options) {
  const Communicator& comm = source.comm();
  std::vector<EdgeList> lists(graph.relations.size());
  for (std::size_t k = 0; k < lists.size(); ++k) {
    const Relation& relation = graph.relations[k];
    EdgeList& edges = lists[k];
    if (relation.reversed) {
      edges = lists[relation.source];
      std::swap(edges.src, edges.dst);
      continue;
    }
    edges = source.read_edges(relation.source);
    edges.weight = {};
    if (!relation.own) continue;
    Index next_id = graph.types.edges[k].num_edges;
    if (options.add_reverse_edges) {
      append_reverse(next_id, edges);
      next_id *= 2;
    }
    if (options.add_self_loops) {
      const PartitionBook slices =
          PartitionBook::even(graph.types.nodes[relation.dst].num_nodes, comm.size());
      Array<Index> nodes(slices.num_nodes(comm.rank()));
      std::iota(nodes.begin(), nodes.end(), slices.begin(comm.rank()));
      append_self_loops(slices.begin(comm.rank()), nodes, next_id, false, edges);
    }
  }
  return lists;
}

/// The ends of the edges of all types in the homogeneous form. Local.
EdgeList homogeneous_ends(const DistributedGraph& graph, const std::vector<EdgeList>& lists) {
  const std::vector<Index> first = first_of_types(graph.types);
  std::size_t count = 0;
  for (const EdgeList& edges : lists) count += edges.src.size();
  EdgeList all;
  all.src.reserve(count);
  all.dst.reserve(count);
  for (std::size_t k = 0; k < lists.size(); ++k) {
    for (const Index node : lists[k].src) all.src.push_back(first[graph.relations[k].src] + node);
    for (const Index node : lists[k].dst) all.dst.push_back(first[graph.relations[k].dst] + node);
  }
  return all;
}

/// The ids that the partitions give. Local.
void number_nodes(const Communicator& comm, const std::vector<NodePartition>& partitions, int parts,
                  DistributedGraph& graph) {
  const PartitionBook part_owners = PartitionBook::even(parts, comm.size());
  for (Index p = part_owners.begin(comm.rank()); p < part_owners.end(comm.rank()); ++p)
    graph.owned_parts.push_back(static_cast<int>(p));
  for (const NodePartition& partition : partitions) {
    Numbering& numbers = graph.nodes.emplace_back();
    numbers.parts = partition.book();
    numbers.ranks = numbers.parts.joined(part_owners);
    numbers.original_ids.reserve(numbers.ranks.num_nodes(comm.rank()));
    for (const int part : graph.owned_parts) {
      const Array<Index> ids = partition.original_ids(part);
      numbers.original_ids.insert(numbers.original_ids.end(), ids.begin(), ids.end());
    }
  }
}

/// A range of the list. The whole list is moved, not copied.
EdgeList take(EdgeList& edges, Range range) {
  if (range.begin == 0 && range.end == edges.src.size()) return std::move(edges);
  EdgeList taken;
  for (const auto column : {&EdgeList::src, &EdgeList::dst, &EdgeList::id}) {
    const auto part = std::span(edges.*column).subspan(range.begin, range.end - range.begin);
    (taken.*column).assign(part.begin(), part.end());
  }
  return taken;
}

/// The order of the nodes of a part, which are numbered type after type: those of type t are
/// [first[t], first[t + 1]). Local.
Array<Index> order_of_part(const DistributedGraph& graph, int part, std::span<const Index> first) {
  Array<Index> src, dst;
  const auto inside = [&](std::size_t k, std::size_t e) {
    const PartitionBook& parts = graph.nodes[graph.relations[k].src].parts;
    return parts.begin(part) <= graph.edges[k].src[e] && graph.edges[k].src[e] < parts.end(part);
  };
  const auto for_each_inside = [&](const auto& take_edge) {
    for (std::size_t k = 0; k < graph.edges.size(); ++k) {
      const Range range = edges_of_part(graph.edges[k], graph.nodes[graph.relations[k].dst].parts, part);
      for (std::size_t e = range.begin; e < range.end; ++e)
        if (inside(k, e)) take_edge(k, e);
    }
  };
  std::size_t count = 0;
  for_each_inside([&](std::size_t, std::size_t) { ++count; });
  src.reserve(count);
  dst.reserve(count);
  for_each_inside([&](std::size_t k, std::size_t e) {
    const Relation& relation = graph.relations[k];
    src.push_back(first[relation.src] + graph.edges[k].src[e] - graph.nodes[relation.src].parts.begin(part));
    dst.push_back(first[relation.dst] + graph.edges[k].dst[e] - graph.nodes[relation.dst].parts.begin(part));
  });
  return locality_order(first.back(), src, dst);
}

/// 1 as an element of this type.
std::vector<std::byte> one(NpyType type) {
  std::vector<std::byte> bytes(element_bytes(type), std::byte{0});
  const auto set = [&](auto value) {
    std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof(value), bytes.data());
  };
  if (type == NpyType::float64) set(1.0);
  if (type == NpyType::float32) set(1.0f);
  if (type == NpyType::float16) set(float_to_half(1));
  if (!is_floating_point(type)) bytes[0] = std::byte{1};  // integers are little-endian
  return bytes;
}

/// The data of the edges with these ids. Reversed edges have those of the edges that they reverse, and self
/// loops those that PartitionGraphOptions names. Collective.
DataArray read_edge_data(GraphSource& source, const Relation& relation, Index num_edges,
                         const DataField& field, const Array<Index>& ids,
                         const PartitionGraphOptions& options) {
  const Index first_loop = relation.own && options.add_reverse_edges ? 2 * num_edges : num_edges;
  Array<Index> rows;
  rows.reserve(ids.size());
  for (const Index id : ids)
    if (id < first_loop) rows.push_back(id < num_edges ? id : id - num_edges);
  DataArray known = source.read_edge_data(relation.source, field.name, rows);
  if (!relation.own || !options.add_self_loops) return known;

  DataArray data(field.type, field.row_shape, static_cast<Index>(ids.size()));
  const std::vector<std::byte> fill = field.name == "weight" || field.name == "edge_weight"
                                          ? one(field.type)
                                          : std::vector<std::byte>(element_bytes(field.type));
  Index next = 0;
  for (std::size_t e = 0; e < ids.size(); ++e) {
    std::byte* row = data.row(static_cast<Index>(e));
    if (ids[e] < first_loop)
      std::copy_n(known.row(next++), data.row_bytes(), row);
    else
      for (Index i = 0; i < data.row_size(); ++i)
        std::copy(fill.begin(), fill.end(), row + i * static_cast<Index>(fill.size()));
  }
  return data;
}

/// A phase of the work, which gives its memory back at the end.
template <class Run>
void run_phase(PartitionProgress progress, const std::string& name, Index total, const Run& run) {
  progress(name, 0, total);
  run();
  release_cached_memory();
  progress(name, total, total);
}

/// The id from which on edges of a type are no edges of the dataset, as EdgeTypeData's.
Index first_added_id(const DistributedGraph& graph, std::size_t edge_type,
                     const PartitionGraphOptions& options) {
  const Relation& relation = graph.relations[edge_type];
  if (relation.reversed) return 0;
  if (relation.own && (options.add_reverse_edges || options.add_self_loops))
    return graph.types.edges[edge_type].num_edges;
  return std::numeric_limits<Index>::max();
}

}  // namespace

std::vector<Index> first_of_types(const SourceTypes& types) {
  return offsets_of_sizes(types.nodes, &SourceNodes::num_nodes);
}

std::vector<NodePartition> partition_of_types(const Communicator& comm, std::span<const Index> first_of_type,
                                              Array<std::int32_t> part_of, int parts) {
  std::vector<NodePartition> partitions;
  if (first_of_type.size() == 2) {
    partitions.push_back(NodePartition::from_assignment(comm, part_of, parts));
    return partitions;
  }
  const PartitionBook slices = PartitionBook::even(first_of_type.back(), comm.size());
  const Index begin = slices.begin(comm.rank()), end = slices.end(comm.rank());
  for (std::size_t t = 0; t + 1 < first_of_type.size(); ++t) {
    // this rank's nodes of the type, to those who have them in their slices of the type
    const PartitionBook of_type = PartitionBook::even(first_of_type[t + 1] - first_of_type[t], comm.size());
    const Index first = std::clamp(first_of_type[t], begin, end),
                last = std::clamp(first_of_type[t + 1], begin, end);
    std::vector<Index> counts;
    for (int q = 0; q < comm.size(); ++q)
      counts.push_back(std::max<Index>(0, std::min(last, first_of_type[t] + of_type.end(q)) -
                                              std::max(first, first_of_type[t] + of_type.begin(q))));
    const auto mine = comm.all_to_all_v(
        std::span<const std::int32_t>(part_of).subspan(first - begin, last - first), counts);
    partitions.push_back(NodePartition::from_assignment(comm, mine.values, parts));
  }
  return partitions;
}

Range edges_of_part(const EdgeList& edges, const PartitionBook& parts, int part) {
  const auto position = [&](Index node) {
    return static_cast<std::size_t>(std::lower_bound(edges.dst.begin(), edges.dst.end(), node) -
                                    edges.dst.begin());
  };
  return {position(parts.begin(part)), position(parts.end(part))};
}

DistributedGraph distribute_graph(GraphSource& source, const PartitionGraphOptions& options,
                                  DivideNodes divide, PartitionProgress progress) {
  const Communicator& comm = source.comm();
  DistributedGraph graph;
  comm.agree([&] { plan_types(source, options, graph); });
  std::vector<EdgeList> lists;
  std::vector<NodePartition> partitions;
  run_phase(progress, "read edges", source.num_edges(),
            [&] { lists = read_transformed_edges(source, graph, options); });
  run_phase(progress, concat("assign nodes (", to_string(options.method), ")"), source.num_nodes(), [&] {
    partitions = graph.types.is_homogeneous() ? divide(graph.types, lists[0])
                                              : divide(graph.types, homogeneous_ends(graph, lists));
  });
  Index num_edges = 0;
  for (const EdgeList& edges : lists) num_edges += edges.size();
  num_edges = comm.all_reduce(num_edges);
  run_phase(progress, "number nodes", source.num_nodes(), [&] {
    number_nodes(comm, partitions, options.parts, graph);
    for (std::size_t k = 0; k < lists.size(); ++k) {
      partitions[graph.relations[k].src].to_partitioned(lists[k].src);
      partitions[graph.relations[k].dst].to_partitioned(lists[k].dst);
    }
    partitions.clear();
  });
  graph.edges.resize(lists.size());
  run_phase(progress, "send edges to their parts", num_edges, [&] {
    for (std::size_t k = 0; k < lists.size(); ++k)
      exchange_edges(comm, graph.nodes[graph.relations[k].dst].ranks, std::move(lists[k]), false,
                     graph.edges[k]);
  });
  return graph;
}

void sort_edges(const Communicator& comm, const PartitionGraphOptions& options, DistributedGraph& graph,
                PartitionProgress progress) {
  Index num_edges = 0;
  for (const EdgeList& edges : graph.edges) num_edges += edges.size();
  run_phase(progress, "sort edges", comm.all_reduce(num_edges), [&] {
    for (std::size_t k = 0; k < graph.edges.size(); ++k) {
      const PartitionBook& ranks = graph.nodes[graph.relations[k].dst].ranks;
      const Index begin = ranks.begin(comm.rank()), end = ranks.end(comm.rank());
      if (graph.relations[k].own && options.add_self_loops && options.remaining_self_loops)
        keep_remaining_self_loops(begin, end, graph.edges[k]);
      if (options.drop_duplicates)
        drop_duplicates(begin, end, graph.edges[k]);
      else
        sort_edges(begin, end, graph.edges[k]);
    }
  });
  for (const EdgeList& edges : graph.edges) graph.num_edges.push_back(comm.all_reduce(edges.size()));
}

void order_nodes(const Communicator& comm, DistributedGraph& graph) {
  const std::size_t types = graph.nodes.size();
  std::vector<Array<Index>> new_ids, original_ids;
  for (const Numbering& numbers : graph.nodes) {
    new_ids.emplace_back(numbers.original_ids.size());
    original_ids.emplace_back(numbers.original_ids.size());
  }
  comm.agree([&] {
    for (const int part : graph.owned_parts) {
      const std::vector<Index> first = offsets_of_sizes(
          graph.nodes, [&](const Numbering& numbers) { return numbers.parts.num_nodes(part); });
      std::vector<Index> next(first.begin(), first.end() - 1);
      for (const Index node : order_of_part(graph, part, first)) {
        const std::size_t t =
            static_cast<std::size_t>(std::ranges::upper_bound(first, node) - first.begin()) - 1;
        const Numbering& numbers = graph.nodes[t];
        const Index own = numbers.ranks.begin(comm.rank()),
                    begin = numbers.parts.begin(part) - own - first[t];
        const Index before = begin + node, after = begin + next[t]++;
        new_ids[t][before] = own + after;
        original_ids[t][after] = numbers.original_ids[before];
      }
    }
  });
  for (std::size_t t = 0; t < types; ++t) graph.nodes[t].original_ids = std::move(original_ids[t]);
  for (std::size_t k = 0; k < graph.edges.size(); ++k) {
    const std::size_t src = graph.relations[k].src, dst = graph.relations[k].dst;
    const PartitionBook& ranks = graph.nodes[dst].ranks;
    for (Index& node : graph.edges[k].dst) node = new_ids[dst][node - ranks.begin(comm.rank())];
    replace_ids(comm, graph.nodes[src].ranks, new_ids[src], graph.edges[k].src);
    sort_edges(ranks.begin(comm.rank()), ranks.end(comm.rank()), graph.edges[k]);
  }
}

std::vector<EdgeList> take_edges_of_part(DistributedGraph& graph, int part, bool last) {
  std::vector<EdgeList> lists;
  for (std::size_t k = 0; k < graph.edges.size(); ++k) {
    lists.push_back(
        take(graph.edges[k], edges_of_part(graph.edges[k], graph.nodes[graph.relations[k].dst].parts, part)));
    if (last) graph.edges[k] = {};
  }
  return lists;
}

GraphData graph_of_part(const GraphSource& source, const DistributedGraph& graph, int part,
                        std::vector<EdgeList> lists, const PartitionGraphOptions& options) {
  GraphData data;
  data.name = source.name();
  for (std::size_t t = 0; t < graph.nodes.size(); ++t) {
    const Numbering& numbers = graph.nodes[t];
    NodeTypeData& nodes =
        data.node_types.emplace_back(NodeTypeData{graph.types.nodes[t].name, numbers.parts, {}, {}});
    if (part < 0) continue;
    const Index own = numbers.ranks.begin(source.comm().rank());
    nodes.original_ids.assign(numbers.original_ids.begin() + (numbers.parts.begin(part) - own),
                              numbers.original_ids.begin() + (numbers.parts.end(part) - own));
  }
  lists.resize(graph.relations.size());  // without a part, there are none
  for (std::size_t k = 0; k < lists.size(); ++k) {
    const SourceEdges& type = graph.types.edges[k];
    const Index num_edges = graph.num_edges.empty() ? 0 : graph.num_edges[k];
    data.edge_types.push_back({type.src_type,
                               type.name,
                               type.dst_type,
                               std::move(lists[k]),
                               num_edges,
                               {},
                               first_added_id(graph, k, options)});
  }
  return data;
}

void read_part_data(GraphSource& source, const DistributedGraph& graph, const PartitionGraphOptions& options,
                    GraphData& part) {
  for (std::size_t t = 0; t < part.node_types.size(); ++t)
    for (const DataField& field : graph.types.nodes[t].fields) {
      NodeTypeData& nodes = part.node_types[t];
      nodes.data.emplace(field.name, source.read_node_data(t, field.name, nodes.original_ids));
    }
  for (std::size_t k = 0; k < part.edge_types.size(); ++k)
    for (const DataField& field : graph.types.edges[k].fields) {
      EdgeTypeData& edges = part.edge_types[k];
      edges.data.emplace(field.name,
                         read_edge_data(source, graph.relations[k], graph.types.edges[k].num_edges, field,
                                        edges.edges.id, options));
    }
}

}}  // namespace sar
