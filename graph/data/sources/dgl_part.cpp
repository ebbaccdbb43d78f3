// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/graph/data/sources/dgl_file.hpp>
#include <sar/graph/data/sources/dgl_part.hpp>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

namespace fs = std::filesystem;

/// Nodes and edges are read in the same way; this is what differs.
struct Kind {
  const char* what;     // "node"
  const char* inner;    // the field that says whether it belongs to the part
  const char* tensors;  // original ids beside the part's graph
  const char* npy;      // original ids beside the JSON
  const DglPartition::Ids& ids;
  std::vector<std::vector<std::string>> names{};  // of each type, the preferred one first
};

Kind node_kind(const DglPartition& partition) {
  Kind kind{"node", "inner_node", "orig_nids.dgl", "orig_node_ids", partition.nodes};
  for (const std::string& name : partition.node_types) kind.names.push_back({name});
  return kind;
}

Kind edge_kind(const DglPartition& partition) {
  Kind kind{"edge", "inner_edge", "orig_eids.dgl", "orig_edge_ids", partition.edges};
  for (const EdgeType& type : partition.edge_types) {
    kind.names.emplace_back();
    if (!type.source.empty()) kind.names.back().push_back(type.canonical_name());
    const bool unique =
        std::count_if(partition.edge_types.begin(), partition.edge_types.end(),
                      [&](const auto& other) { return other.relation == type.relation; }) == 1;
    if (unique || type.source.empty()) kind.names.back().push_back(type.relation);
  }
  return kind;
}

/// The nodes or edges in the graph of a part. Inner ones belong to the part; the others are its halo.
struct Members {
  Array<std::int64_t> ids;  // among those of all types
  Array<std::uint8_t> is_inner;
  std::vector<Array<Index>> inner;  // [type][k]: the position of the part's k-th one in the graph
};

const DataArray& column(const DataColumns& columns, const std::string& name, const std::string& path) {
  const auto found = columns.find(name);
  require<InputError>(found != columns.end(), path, ": the graph has no tensor '", name,
                      "', expected the graph of a part");
  return found->second;
}

Members read_members(const Kind& kind, const DataColumns& columns, int part, const std::string& path) {
  Members members;
  members.ids = column(columns, "_ID", path).to_integers(path + ": tensor '_ID'");
  members.is_inner = column(columns, kind.inner, path).to_mask(concat(path, ": tensor '", kind.inner, "'"));
  Array<std::int64_t> types;
  if (columns.contains("_TYPE")) types = columns.at("_TYPE").to_integers(path + ": tensor '_TYPE'");

  Index left = 0;
  for (const PartitionBook& book : kind.ids.books) left += book.num_nodes(part);
  require<InputError>(left <= static_cast<Index>(members.ids.size()), path, ": the graph has ",
                      members.ids.size(), " ", kind.what, "s, expected ", left, " of part ", part,
                      " at least");
  for (const PartitionBook& book : kind.ids.books) members.inner.emplace_back(book.num_nodes(part), -1);
  for (std::size_t i = 0; i < members.is_inner.size(); ++i) {
    if (members.is_inner[i] == 0) continue;
    const Index id = members.ids[i];
    const DglPartition::Range* range = kind.ids.find(id);
    require<InputError>(range != nullptr && range->part == part, path, ": inner ", kind.what, " ", i,
                        " has _ID ", id, ", expected an id of part ", part);
    require<InputError>(types.empty() || types[i] == static_cast<std::int64_t>(range->type), path, ": inner ",
                        kind.what, " ", i, " is of type ", types.empty() ? 0 : types[i], ", expected ",
                        range->type);
    Index& place = members.inner[range->type][id - range->begin];
    require<InputError>(place < 0, path, ": _ID ", id, " belongs to two inner ", kind.what,
                        "s, expected one");
    place = static_cast<Index>(i);
    --left;
  }
  require<InputError>(left == 0, path, ": ", left, " ", kind.what, "s of part ", part,
                      " are missing, expected those that the JSON file announces");
  return members;
}

/// The ids of the nodes (edges) of a type in a part: the original ones where one of the partition's files has
/// them, otherwise those of the partition.
class OriginalIds {
 public:
  OriginalIds(const Kind& kind, const DglPartition& partition, int part, const DataColumns& graph_data,
              const Members& members)
      : kind_(kind), part_(part), graph_(partition.parts[part].graph), members_(members) {
    if (graph_data.contains("orig_id"))
      by_place_ = graph_data.at("orig_id").to_integers(graph_ + ": tensor 'orig_id'");
    else if (const fs::path path = fs::path(graph_).parent_path() / kind.tensors; is_there(path.string())) {
      tensors_path_ = path.string();
      tensors_ = read_dgl_tensors(tensors_path_);
    }
    directory_ = fs::path(partition.path).parent_path();
  }

  /// Sets the ids and returns whether they are the original ones. `data`: the fields of the type.
  bool take(std::size_t t, const DataColumns& data, Array<Index>& ids) const {
    const PartitionBook& book = kind_.ids.books[t];
    const Index size = book.num_nodes(part_);
    ids.resize(size);
    if (by_place_) {
      std::transform(members_.inner[t].begin(), members_.inner[t].end(), ids.begin(),
                     [&](Index place) { return (*by_place_)[place]; });
      return true;
    }
    if (tensors_) {
      ids = from_tensors(t, size);
      return true;
    }
    if (const std::string path = npy_path(t); !path.empty()) {
      const NpyFile file(path);
      file.expect_dims(1);
      require<InputError>(file.size() == book.num_nodes(), path, ": there are ", file.size(),
                          " ids, expected ", book.num_nodes(), ", one for each ", kind_.what, " of type ",
                          kind_.names[t].front());
      file.read(book.begin(part_), book.end(part_), std::span<Index>(ids));
      return true;
    }
    if (const auto field = data.find("orig_id"); field != data.end()) {
      // a user's field of that name need not hold ids
      Array<Index> values = field->second.to_integers(
          concat(graph_, ": the data 'orig_id' of ", kind_.what, "s of type ", kind_.names[t].front()));
      if (std::ranges::all_of(values, [&](Index id) { return 0 <= id && id < book.num_nodes(); })) {
        ids = std::move(values);
        return true;
      }
    }
    std::iota(ids.begin(), ids.end(), book.begin(part_));
    return size == 0 || book.num_parts() == 1;  // DGL leaves the order of a graph in one part as it is
  }

 private:
  [[nodiscard]] Array<Index> from_tensors(std::size_t t, Index size) const {
    for (const std::string& name : kind_.names[t]) {
      const auto found = tensors_->find(name);
      if (found == tensors_->end()) continue;
      require<InputError>(found->second.num_rows == size, tensors_path_, ": tensor '", name, "' has ",
                          found->second.num_rows, " ids, expected ", size);
      return found->second.to_integers(concat(tensors_path_, ": tensor '", name, "'"));
    }
    require<InputError>(size == 0, tensors_path_, ": there is no tensor '", kind_.names[t].front(),
                        "', expected the original ids of its ", size, " ", kind_.what, "s");
    return {};
  }

  [[nodiscard]] std::string npy_path(std::size_t t) const {
    std::vector<std::string> names;
    if (kind_.names.size() == 1) names.emplace_back();
    for (const std::string& name : kind_.names[t]) names.push_back("." + name);
    for (const std::string& name : names)
      if (const fs::path path = directory_ / (kind_.npy + name + ".npy"); is_there(path.string()))
        return path.string();
    return {};
  }

  const Kind& kind_;
  int part_;
  std::string graph_;
  const Members& members_;
  std::optional<Array<std::int64_t>> by_place_;
  std::string tensors_path_;
  std::optional<DataColumns> tensors_;
  fs::path directory_;
};

/// Reads a file of features: the tensors of each type, their names without the type.
std::vector<DataColumns> read_features(const Kind& kind, int part, const std::string& path) {
  std::vector<DataColumns> columns(kind.names.size());
  DataColumns tensors = read_dgl_tensors(path);
  for (auto& [key, data] : tensors) {
    std::size_t type = columns.size(), longest = 0;
    std::string field;
    for (std::size_t t = 0; t < columns.size(); ++t)
      for (const std::string& name : kind.names[t])
        if (name.size() >= longest && key.size() > name.size() && key.starts_with(name) &&
            key[name.size()] == '/') {
          type = t;
          longest = name.size();
          field = key.substr(name.size() + 1);
        }
    if (type == columns.size() && columns.size() == 1 && key.find('/') == std::string::npos) {
      type = 0;  // the first versions of DGL wrote no type
      field = key;
    }
    require<InputError>(type < columns.size(), path, ": tensor '", key, "' belongs to no type of ", kind.what,
                        "s, expected a name such as '", kind.names.front().front(), "/features'");
    const Index rows = kind.ids.books[type].num_nodes(part);
    require<InputError>(data.num_rows == rows, path, ": tensor '", key, "' has ", data.num_rows,
                        " rows, expected ", rows, ", one for each ", kind.what, " of the part");
    require<InputError>(columns[type].emplace(field, std::move(data)).second, path,
                        ": there are two tensors '", key, "', expected one");
  }
  return columns;
}

/// The edges of a type in a part, in the order of their ids. Where the types of the ends are not known, the
/// first edge sets them.
EdgeTypeData take_edges(const DglPartition& partition, int part, std::size_t t, const Members& edges,
                        const Members& nodes, const DglGraph::EdgeType& graph) {
  const std::string& path = partition.parts[part].graph;
  const EdgeType& type = partition.edge_types[t];
  EdgeTypeData result{type.source, type.relation, type.destination, {}, 0, {}};
  const std::string expected = index_range(partition.nodes.size());
  const auto end_of = [&](Index node, std::string& end_type, Index edge) {
    const Index id = nodes.ids[node];
    const DglPartition::Range* range = partition.nodes.find(id);
    require<InputError>(range != nullptr, path, ": node ", node, " has _ID ", id, ", expected ", expected);
    const std::string& name = partition.node_types[range->type];
    if (end_type.empty()) end_type = name;
    require<InputError>(name == end_type, path, ": edge ", edge, " of type ", type.relation,
                        " has an end of type ", name, ", expected ", end_type);
    return range->first + (id - range->begin);
  };
  const Array<Index>& places = edges.inner[t];
  result.edges.src.reserve(places.size());
  result.edges.dst.reserve(places.size());
  for (const Index place : places) {
    const Index src = graph.src[place], dst = graph.dst[place];
    require<InputError>(nodes.is_inner[dst] != 0, path, ": inner edge ", place,
                        " has a destination that is not of part ", part,
                        ", expected edges to belong to the part of their destination");
    result.edges.src.push_back(end_of(src, result.src_type, place));
    result.edges.dst.push_back(end_of(dst, result.dst_type, place));
  }
  return result;
}

}  // namespace

GraphData read_dgl_part(const DglPartition& partition, int part) {
  const DglPartition::Part& files = partition.parts[part];
  const Kind node_kinds = node_kind(partition), edge_kinds = edge_kind(partition);
  DglGraph graph = read_dgl_graph(files.graph);
  require<InputError>(graph.node_types.size() == 1 && graph.edge_types.size() == 1, files.graph,
                      ": the graph has ", graph.node_types.size(), " types of nodes and ",
                      graph.edge_types.size(),
                      " of edges, expected one of each (a part's graph counts all types together)");
  DglGraph::EdgeType& links = graph.edge_types.front();
  const DataColumns& node_columns = graph.node_types.front().data;
  const Members nodes = read_members(node_kinds, node_columns, part, files.graph);
  const Members edges = read_members(edge_kinds, links.data, part, files.graph);

  GraphData result;
  std::vector<DataColumns> node_data = read_features(node_kinds, part, files.node_data);
  const OriginalIds original_nodes(node_kinds, partition, part, node_columns, nodes);
  for (std::size_t t = 0; t < partition.node_types.size(); ++t) {
    NodeTypeData& type = result.node_types.emplace_back(NodeTypeData{partition.node_types[t], {}, {}, {}});
    type.ids_are_original = original_nodes.take(t, node_data[t], type.original_ids);
    type.data = std::move(node_data[t]);
  }

  std::vector<DataColumns> edge_data = read_features(edge_kinds, part, files.edge_data);
  const OriginalIds original_edges(edge_kinds, partition, part, links.data, edges);
  for (std::size_t t = 0; t < partition.edge_types.size(); ++t) {
    EdgeTypeData type = take_edges(partition, part, t, edges, nodes, links);
    type.ids_are_original = original_edges.take(t, edge_data[t], type.edges.id);
    type.data = std::move(edge_data[t]);
    result.edge_types.push_back(std::move(type));
  }
  return result;
}

}}  // namespace sar
