#include <sar/core/error.hpp>
#include <sar/graph/data/node_columns.hpp>
#include <sar/graph/data/parts/partition_directory.hpp>
#include <sar/graph/data/parts/partition_steps.hpp>
#include <sar/graph/data/sources/dataset_source.hpp>
#include <sar/graph/data/sources/dgl_partition.hpp>
#include <sar/graph/data/sources/find_dataset.hpp>
#include <sar/graph/data/sources/load_dataset.hpp>
#include <sar/graph/partition/assignment.hpp>

#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// A part of each type for each rank. Collective.
std::vector<NodePartition> divide(const Communicator& comm, const SourceTypes& types, const EdgeList& edges,
                                  const DatasetOptions& options) {
  std::vector<NodePartition> partitions;
  if (types.nodes.size() == 1 || options.partition == PartitionMethod::contiguous ||
      options.partition == PartitionMethod::random) {
    for (const SourceNodes& type : types.nodes)
      partitions.push_back(
          partition_nodes(comm, type.num_nodes, edges, options.partition, options.partition_seed));
    return partitions;
  }
  const std::vector<Index> first = first_of_types(types);
  return partition_of_types(
      comm, first,
      assign_nodes(comm, first.back(), edges, options.partition,
                   {.parts = comm.size(), .seed = options.partition_seed, .first_of_type = first}),
      comm.size());
}

/// What rank 0 finds. Collective, inside agree().
FoundDataset find_on_rank_0(const Communicator& comm, const std::string& path) {
  FoundDataset found;
  if (comm.rank() == 0) found = find_dataset(path);
  comm.broadcast(std::span(&found.kind, 1), 0);
  found.path = comm.broadcast(found.path, 0);
  return found;
}

/// The beginning of a message about the field for `key`. Local.
std::string place_of(const GraphSource& source, const DatasetOptions& options, const std::string& key) {
  const auto named = options.fields.find(key);
  return source.place_of(named == options.fields.end() ? key : named->second);
}

/// Collective.
GraphData load_parts(const Communicator& comm, const FoundDataset& found) {
  const bool ours = found.kind == DatasetKind::partition_directory;
  GraphData graph = ours ? load_partition(comm, found.path) : load_dgl_partition(comm, found.path);
  SourceTypes types;
  for (const NodeTypeData& type : graph.node_types)
    types.nodes.push_back({type.name, type.book.num_nodes(), fields_of(type.data)});
  for (const EdgeTypeData& type : graph.edge_types)
    types.edges.push_back({type.src_type, type.name, type.dst_type, type.num_edges, fields_of(type.data)});
  graph.description =
      concat(ours ? "partition directory " : "DGL partition ", graph.name, ": ", types.describe());
  return graph;
}

}  // namespace

std::unique_ptr<GraphSource> open_dataset(const Communicator& comm, const std::string& path) {
  return comm.agree([&]() -> std::unique_ptr<GraphSource> {
    const FoundDataset found = find_on_rank_0(comm, path);
    require<InputError>(found.kind != DatasetKind::unknown, found.path,
                        ": no dataset was found, expected a directory with edge_index.npy, one with a "
                        "hetero.json, one with a partition.json, or the JSON file of a DGL partition");
    require<InputError>(!found.is_partitioned(), found.path,
                        ": the graph is partitioned already, expected one that is not");
    return std::make_unique<DatasetSource>(comm, found.path);
  });
}

NodeData load_dataset(GraphSource& source, const DatasetOptions& options, EdgeData* edges) {
  const Communicator& comm = source.comm();
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("load_dataset").equal(options));
    const SourceTypes& types = source.types();
    require_one_type(source.name(), types.nodes.size(), types.edges.size());
    require_nodes_for_ranks(source.name(), source.num_nodes(), comm.size());
    const PartitionGraphOptions how{.parts = comm.size(), .method = options.partition};
    std::vector<NodePartition> partitions;  // for the pairs
    const auto divide_nodes = [&](const SourceTypes&, const EdgeList& list) {
      auto divided = divide(comm, types, list, options);
      if (source.has_listed_pairs()) partitions = divided;
      return divided;
    };
    DistributedGraph divided = distribute_graph(source, how, divide_nodes, no_progress);
    GraphData graph = graph_of_part(source, divided, comm.rank(), std::move(divided.edges), how);
    divided = {};
    EdgeList& list = graph.edge_types[0].edges;
    const std::vector<DataField>& edge_fields = types.edges[0].fields;
    if (const std::string weight = weight_field(edge_fields, options, source.name()); !weight.empty())
      list.weight =
          to_edge_weights(source.read_edge_data(0, weight, list.id), list.id, source.place_of(weight));
    const auto read_nodes = [&](NodeData& data) {
      const auto read = [&](const std::string& field, Index begin, Index end) {
        return source.read_node_data(0, field,
                                     std::span<const Index>(data.original_ids).subspan(begin, end - begin));
      };
      const auto place_of = [&](const std::string& field) { return source.place_of(field); };
      read_node_columns(comm, {types.nodes[0].fields, read, place_of}, options, data);
    };
    const auto read_edges = [&](const std::string& field, std::span<const Index> ids) {
      return source.read_edge_data(0, field, ids);
    };
    NodeData data = view_of_graph(comm, graph, options, read_nodes, {edge_fields, read_edges}, edges);
    if (edges == nullptr) return data;
    edges->lists = source.read_listed_pairs();
    for (ListedPairs& pairs : edges->lists)
      for (Array<Index>* nodes :
           {&pairs.edges.src, &pairs.edges.dst, &pairs.negatives.src, &pairs.negatives.dst})
        partitions.at(0).to_partitioned(*nodes);
    return data;
  });
}

NodeData load_dataset(const Communicator& comm, const std::string& path, const DatasetOptions& options,
                      EdgeData* edges) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("load_dataset").equal(options));
    const FoundDataset found = find_on_rank_0(comm, path);
    if (found.is_partitioned()) {
      NodeData data = to_node_data(comm, load_parts(comm, found), options, edges);
      require_training_labels(comm, data);
      return data;
    }
    DatasetSource source(comm, path, options.fields, /*for_training=*/true);
    if (source.types().is_homogeneous())
      require_nodes_for_ranks(place_of(source, options, "features"), source.num_nodes(), comm.size());
    NodeData data = load_dataset(source, options, edges);
    require_training_labels(comm, data, place_of(source, options, "train_mask"));
    return data;
  });
}

GraphData load_graph(GraphSource& source, const DatasetOptions& options) {
  const Communicator& comm = source.comm();
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("load_graph").equal(options));
    require_nodes_for_ranks(source.name(), source.num_nodes(), comm.size());
    const PartitionGraphOptions how{.parts = comm.size(),
                                    .method = options.partition,
                                    .seed = options.partition_seed,
                                    .add_reverse_edges = options.add_reverse_edges,
                                    .add_self_loops = options.add_self_loops,
                                    .drop_duplicates = options.drop_duplicates,
                                    .remaining_self_loops = options.remaining_self_loops};
    const auto divide_nodes = [&](const SourceTypes& types, const EdgeList& edges) {
      return divide(comm, types, edges, options);
    };
    DistributedGraph divided = distribute_graph(source, how, divide_nodes, no_progress);
    sort_edges(comm, how, divided, no_progress);
    GraphData graph = graph_of_part(source, divided, comm.rank(), std::move(divided.edges), how);
    read_part_data(source, divided, how, graph);
    graph.description = source.description();
    return graph;
  });
}

GraphData load_graph(const Communicator& comm, const std::string& path, const DatasetOptions& options) {
  return comm.agree([&] {
    const FoundDataset found = find_on_rank_0(comm, path);
    if (!found.is_partitioned()) return load_graph(*open_dataset(comm, path), options);
    require<InputError>(
        !options.add_reverse_edges && !options.add_self_loops && !options.drop_duplicates, found.path,
        ": the graph is partitioned already, expected the options that change its edges when it ",
        "is partitioned");
    return load_parts(comm, found);
  });
}

}}  // namespace sar
