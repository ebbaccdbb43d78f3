// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/json.hpp>
#include <sar/graph/data/columns.hpp>
#include <sar/graph/data/dataset_source.hpp>
#include <sar/graph/data/dgl_partition.hpp>
#include <sar/graph/data/graph_steps.hpp>
#include <sar/graph/data/load_dataset.hpp>
#include <sar/graph/data/partition_description.hpp>
#include <sar/graph/data/partition_directory.hpp>
#include <sar/graph/data/splits.hpp>
#include <sar/graph/partition/partition.hpp>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// A part of each type for each rank. Collective.
std::vector<NodePartition> divide(const Communicator& comm, const GraphData& graph,
                                  const DatasetOptions& options) {
  const PartitionMethod method = options.partition;
  const bool by_formula = method == PartitionMethod::contiguous || method == PartitionMethod::random;
  EdgeList all;
  const EdgeList& edges = by_formula ? all : homogeneous_edges(graph, all);
  const std::vector<Index> first = first_of_types(graph);
  if (graph.node_types.size() > 1 && !by_formula)
    return partition_of_types(
        comm, first,
        assign_nodes(comm, first.back(), edges, method,
                     {.parts = comm.size(), .seed = options.partition_seed, .first_of_type = first}),
        comm.size());
  std::vector<NodePartition> partitions;
  for (const NodeTypeData& type : graph.node_types)
    partitions.push_back(partition_nodes(comm, type.book.num_nodes(), edges, method, options.partition_seed));
  return partitions;
}

/// The source's lists of pairs of an edge type in global ids of the types of its ends. Collective.
std::vector<ListedPairs> read_listed_pairs(GraphSource& source, std::size_t type, const NodePartition& src,
                                           const NodePartition& dst) {
  std::vector<ListedPairs> lists = source.read_listed_pairs(type);
  for (ListedPairs& pairs : lists) {
    for (Array<Index>* nodes : {&pairs.edges.src, &pairs.negatives.src}) src.to_partitioned(*nodes);
    for (Array<Index>* nodes : {&pairs.edges.dst, &pairs.negatives.dst}) dst.to_partitioned(*nodes);
  }
  return lists;
}

/// Reads the lists of the edge type that the options name. Collective.
void read_lists_of_type(GraphSource& source, const std::vector<NodePartition>& partitions,
                        const DatasetOptions& options, GraphData& graph) {
  if (options.edge_type.empty() || !source.has_listed_pairs()) return;
  const std::size_t k = source.types().edge_place_of(options.edge_type);
  EdgeTypeData& type = graph.edge_types[k];
  type.lists = read_listed_pairs(source, k, partitions[graph.place_of(type.src_type)],
                                 partitions[graph.place_of(type.dst_type)]);
}

/// What rank 0 has found. Collective, inside agree().
FoundDataset of_rank_0(const Communicator& comm, FoundDataset found) {
  comm.broadcast(std::span(&found.kind, 1), 0);
  found.path = comm.broadcast(found.path, 0);
  return found;
}
FoundDataset find_on_rank_0(const Communicator& comm, const std::string& path) {
  return of_rank_0(comm, comm.rank() == 0 ? find_dataset(path) : FoundDataset());
}

/// The beginning of a message about the field for `key`. Local.
std::string place_of(const GraphSource& source, const DatasetOptions& options, const std::string& key) {
  return source.place_of(options.field(key));
}

/// Collective.
GraphData load_parts(const Communicator& comm, const FoundDataset& found) {
  const bool ours = found.kind == DatasetKind::partition_directory;
  GraphData graph = ours ? load_partition(comm, found.path) : load_dgl_partition(comm, found.path);
  graph.description =
      concat(ours ? "partition directory " : "DGL partition ", graph.name, ": ", graph.describe());
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

NodeData load_dataset(GraphSource& source, const DatasetOptions& options) {
  const Communicator& comm = source.comm();
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("load_dataset").equal(options));
    const GraphData& types = source.types();
    require_one_type(source.name(), types.node_types.size(), types.edge_types.size());
    require_nodes_for_ranks(source.name(), source.num_nodes(), comm.size());
    const std::vector<DataField>& edge_fields = types.edge_types[0].unread;
    GraphData graph = read_edges(source);
    EdgeTypeData& type = graph.edge_types[0];
    if (const std::string weight = weight_field(edge_fields, options, source.name()); !weight.empty())
      type.edges.weight = to_edge_weights(source.read_edge_data(0, weight, type.edges.id), type.edges.id,
                                          source.place_of(weight));
    std::vector<NodePartition> partitions = divide(comm, graph, options);
    std::vector<ListedPairs> lists;
    if (options.edge_data) lists = read_listed_pairs(source, 0, partitions[0], partitions[0]);
    add_edges(comm, options, graph);
    number_nodes(comm, std::move(partitions), graph);
    send_edges(comm, graph);
    drop_edges(comm, options, graph);

    NodeData data = without_columns(graph);
    if (options.edge_data) {
      const auto read = [&](const std::string& field, std::span<const Index> ids) {
        return source.read_edge_data(0, field, ids);
      };
      data.edge_data = read_edge_columns({edge_fields, read}, options, data, type.first_added_id);
      data.edge_data.lists = std::move(lists);
    }
    const auto read = [&](const std::string& field, std::span<const Index> rows) {
      Array<Index> ids;
      for (const Index row : rows) ids.push_back(data.original_ids[row]);
      return source.read_node_data(0, field, ids);
    };
    const auto place_of_field = [&](const std::string& field) { return source.place_of(field); };
    read_node_columns(comm, {types.node_types[0].unread, read, no_sparse_column, place_of_field}, options,
                      data);
    return data;
  });
}

NodeData load_dataset(const Communicator& comm, const std::string& path, const DatasetOptions& options) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("load_dataset").equal(options));
    const FoundDataset found = find_on_rank_0(comm, path);
    if (found.is_partitioned()) {
      NodeData data = to_node_data(comm, load_parts(comm, found), options);
      require_training_labels(comm, data);
      return data;
    }
    DatasetSource source(comm, path, options.fields, /*for_training=*/true);
    if (source.types().is_homogeneous())
      require_nodes_for_ranks(place_of(source, options, "features"), source.num_nodes(), comm.size());
    NodeData data = load_dataset(source, options);
    require_training_labels(comm, data, place_of(source, options, "train_mask"));
    return data;
  });
}

GraphData load_graph(GraphSource& source, const DatasetOptions& options) {
  const Communicator& comm = source.comm();
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("load_graph").equal(options));
    require_nodes_for_ranks(source.name(), source.num_nodes(), comm.size());
    GraphData graph = read_edges(source);
    add_edges(comm, options, graph);
    std::vector<NodePartition> partitions = divide(comm, graph, options);
    read_lists_of_type(source, partitions, options, graph);
    number_nodes(comm, std::move(partitions), graph);
    send_edges(comm, graph);
    drop_edges(comm, options, graph);
    if (!options.drop_duplicates) sort_edges(comm, graph);  // else they are sorted
    choose_sparse_fields(source, options, graph);
    read_columns(source, options, graph);
    graph.description = source.description();
    return graph;
  });
}

GraphData load_graph(const Communicator& comm, const std::string& path, const DatasetOptions& options) {
  return comm.agree([&] { return load_graph(comm, find_on_rank_0(comm, path), options); });
}

GraphData load_graph(const Communicator& comm, const FoundDataset& given, const DatasetOptions& options) {
  return comm.agree([&] {
    const FoundDataset found = of_rank_0(comm, given);
    if (!found.is_partitioned()) return load_graph(*open_dataset(comm, found.path), options);
    require<InputError>(
        !options.add_reverse_edges && !options.add_self_loops && !options.drop_duplicates, found.path,
        ": the graph is partitioned already, expected the options that change its edges when it ",
        "is partitioned");
    return load_parts(comm, found);
  });
}

namespace {

namespace fs = std::filesystem;

/// Which program's description of a partitioned graph a JSON file is. A damaged partition.json counts as
/// ours: loading it says what is wrong.
DatasetKind kind_of_json(const std::string& path) {
  std::string text;
  try {
    const bool is_partition = fs::path(path).filename() == "partition.json";
    text = is_partition ? read_text(path, "a JSON file", most_description_bytes)
                        : read_text(path, "a JSON file");
  } catch (const InputError&) {  // cannot be read
    return DatasetKind::unknown;
  }
  try {
    const JsonValue file = JsonValue::parse(text, path, "a description", path);
    if (file.has("format") && file.at("format").text() == "sar-partition")
      return DatasetKind::partition_directory;
    if (file.has("part-0")) return DatasetKind::dgl_partition;
  } catch (const InputError&) {  // is damaged
    if (fs::path(path).filename() == "partition.json") return DatasetKind::partition_directory;
  }
  return DatasetKind::unknown;
}

/// The only JSON file of a directory that describes a DGL partition; empty when there is none or several.
std::string find_dgl_json(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code error;
  for (const std::string& name : names_in(directory, error)) {
    const std::string path = (fs::path(directory) / name).string();
    if (name.ends_with(".json") && kind_of_json(path) == DatasetKind::dgl_partition) found.push_back(path);
  }
  return found.size() == 1 ? found[0] : "";
}

}  // namespace

FoundDataset find_dataset(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    if (fs::path(path).extension() != ".json") return {DatasetKind::unknown, path};
    const DatasetKind kind = kind_of_json(path);
    if (kind != DatasetKind::partition_directory) return {kind, path};
    if (fs::path(path).filename() != "partition.json") return {DatasetKind::unknown, path};
    const std::string directory = fs::path(path).parent_path().string();
    return {kind, directory.empty() ? "." : directory};
  }
  if (fs::exists(path + "/edge_index.npy", error)) return {DatasetKind::dataset_directory, path};
  if (fs::exists(path + "/hetero.json", error)) return {DatasetKind::hetero_directory, path};
  if (kind_of_json(path + "/partition.json") == DatasetKind::partition_directory)
    return {DatasetKind::partition_directory, path};
  if (std::string json = find_dgl_json(path); !json.empty())
    return {DatasetKind::dgl_partition, std::move(json)};
  return {DatasetKind::unknown, path};
}
}}  // namespace sar
