#include <sar/core/error.hpp>
#include <sar/core/file.hpp>
#include <sar/graph/data/dataset_source.hpp>
#include <sar/graph/data/dgl_partition.hpp>
#include <sar/graph/data/hetero_dataset.hpp>
#include <sar/graph/data/load_graph_data.hpp>
#include <sar/graph/data/open_dataset.hpp>
#include <sar/graph/data/partition_directory.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

namespace fs = std::filesystem;

/// Which program's description of a partitioned graph a JSON file is. A damaged partition.json counts as
/// ours: loading it says what is wrong.
DatasetKind kind_of_json(const std::string& path) {
  try {
    const auto json =
        nlohmann::json::parse(read_text(path, "a JSON file"), nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded() && fs::path(path).filename() == "partition.json")
      return DatasetKind::partition_directory;
    if (!json.is_object()) return DatasetKind::unknown;
    const auto format = json.find("format");
    if (format != json.end() && *format == "sar-partition") return DatasetKind::partition_directory;
    if (json.contains("part-0")) return DatasetKind::dgl_partition;
  } catch (const InputError&) {  // cannot be read
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

/// "partition directory cora: 2708 nodes, 10556 edges; nodes: features labels"
std::string describe(const GraphData& graph, const char* form) {
  std::string sizes, data;
  const auto add = [&](Index count, const char* what, const DataColumns& columns) {
    sizes += concat(sizes.empty() ? " " : ", ", count, " ", what);
    if (!columns.empty()) data += concat("; ", what, ":");
    for (const auto& column : columns) data += " " + column.first;
  };
  const bool typed = !graph.is_homogeneous();
  for (const NodeTypeData& type : graph.node_types)
    add(type.book.num_nodes(), typed ? (type.name + " nodes").c_str() : "nodes", type.data);
  for (const EdgeTypeData& type : graph.edge_types)
    add(type.num_edges, typed ? (type.canonical_name() + " edges").c_str() : "edges", type.data);
  return concat(form, " ", graph.name, ":", sizes, data);
}

/// What rank 0 found. Collective.
FoundDataset agreed(const Communicator& comm, FoundDataset found) {
  comm.broadcast(std::span(&found.kind, 1), 0);
  found.path = comm.broadcast(found.path, 0);
  if (found.kind == DatasetKind::unknown)
    throw InputError(concat(found.path,
                            ": no dataset was found, expected a directory with edge_index.npy, one with a "
                            "hetero.json, one with a partition.json, or the JSON file of a DGL partition"));
  return found;
}

/// Collective.
std::unique_ptr<GraphSource> source_of(const Communicator& comm, const FoundDataset& found) {
  if (found.kind == DatasetKind::hetero_directory)
    return std::make_unique<HeteroDatasetSource>(comm, found.path);
  return std::make_unique<DatasetSource>(comm, found.path);
}

/// A graph that is partitioned already. Collective.
OpenedGraph load_parts(const Communicator& comm, const FoundDataset& found) {
  const bool ours = found.kind == DatasetKind::partition_directory;
  OpenedGraph opened;
  opened.graph = ours ? load_partition(comm, found.path) : load_dgl_partition(comm, found.path);
  opened.description = describe(opened.graph, ours ? "partition directory" : "DGL partition");
  return opened;
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

OpenedGraph open_graph(const Communicator& comm, const FoundDataset& mine, const DatasetOptions& options) {
  return comm.agree([&] {
    const FoundDataset found = agreed(comm, mine);
    if (!found.is_partitioned()) {
      const std::unique_ptr<GraphSource> source = source_of(comm, found);
      return OpenedGraph{load_graph_data(*source, options), source->description()};
    }
    require<InputError>(
        !options.add_reverse_edges && !options.add_self_loops && !options.drop_duplicates, found.path,
        ": the graph is partitioned already, expected the options that change its edges when it ",
        "is partitioned");
    return load_parts(comm, found);
  });
}

OpenedDataset open_dataset(const Communicator& comm, const FoundDataset& mine, const DatasetOptions& options,
                           EdgeData* edges) {
  return comm.agree([&] {
    const FoundDataset found = agreed(comm, mine);
    if (!found.is_partitioned()) {
      const std::unique_ptr<GraphSource> source = source_of(comm, found);
      return OpenedDataset{load_graph(*source, options, edges), source->description()};
    }
    OpenedGraph opened = load_parts(comm, found);
    return OpenedDataset{to_node_data(comm, std::move(opened.graph), options, edges),
                         std::move(opened.description)};
  });
}

}  // namespace sar
