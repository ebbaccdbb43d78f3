// SPDX-License-Identifier: MIT
#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/json.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/graph/data/dgl_file.hpp>
#include <sar/graph/data/dgl_partition.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// A value of the file, and its place for messages: "x.json: node_map".
struct Node {
  const nlohmann::json& json;
  std::string where;

  template <class... Parts>
  void check(bool condition, const Parts&... parts) const {
    require<InputError>(condition, where, " ", parts...);
  }
  [[nodiscard]] bool has(const std::string& key) const { return json.is_object() && json.contains(key); }
  [[nodiscard]] Node at(const std::string& key) const {
    check(json.is_object(), "is ", json.type_name(), ", expected an object");
    check(json.contains(key), "has no '", key, "', expected what DGL's partition_graph writes");
    return {json.at(key), where + " " + key};
  }
  [[nodiscard]] Node at(std::size_t i) const { return {json.at(i), concat(where, " [", i, "]")}; }

  [[nodiscard]] std::string text() const {
    check(json.is_string(), "is ", json.type_name(), ", expected a string");
    return json.get<std::string>();
  }
  [[nodiscard]] Index integer() const {
    check(json.is_number_integer() &&
              (!json.is_number_unsigned() || json.get<std::uint64_t>() <= std::uint64_t{INT64_MAX}),
          "is ", json.is_number() ? "a number that is no integer of 64 bits" : json.type_name(),
          ", expected an integer");
    return json.get<Index>();
  }
};

/// The names of an object such as {"author": 0, "paper": 1} in the order of their numbers.
std::vector<std::string> names_by_number(const Node& node) {
  node.check(node.json.is_object() && !node.json.empty(), "is ",
             node.json.is_object() ? "empty" : node.json.type_name(),
             ", expected an object of types and their numbers");
  std::vector<std::string> names(node.json.size());
  std::vector<bool> seen(names.size(), false);
  for (const auto& item : node.json.items()) {
    const Index t = node.at(item.key()).integer();
    node.check(0 <= t && t < std::ssize(names) && !seen[t], "has the number ", t, " for '", item.key(),
               "', expected 0 to ", names.size() - 1, ", each once");
    seen[t] = true;
    names[t] = item.key();
  }
  return names;
}

using Ranges = std::vector<DglPartition::Range>;

/// The ranges of one type, one for each part. Older DGL writes their ends only.
Ranges read_ranges(const Node& list, std::size_t type, std::size_t parts, Index total) {
  list.check(!list.json.is_string(), "is the file ", list.json, ", expected ranges of ids");
  list.check(list.json.is_array() && list.json.size() == parts, "has ", list.json.size(),
             " entries, expected ", parts, ", one for each part");
  Ranges ranges;
  Index first = 0, end_before = 0;
  for (std::size_t p = 0; p < parts; ++p) {
    const Node entry = list.at(p);
    DglPartition::Range range{.part = static_cast<int>(p), .type = type, .first = first};
    if (entry.json.is_array()) {
      entry.check(entry.json.size() == 2, "has ", entry.json.size(),
                  " numbers, expected the begin and the end of ids");
      range.begin = entry.at(0).integer();
      range.end = entry.at(1).integer();
    } else {
      range.begin = end_before;
      range.end = end_before = entry.integer();
    }
    if (range.begin == -1 && range.end == -1) range.begin = range.end = 0;  // newer DGL's empty range
    entry.check(0 <= range.begin && range.begin <= range.end && range.end <= total, "is ", range.begin,
                " to ", range.end, ", expected ids of 0 to ", total);
    entry.check(range.end - range.begin <= total - first, "is ", range.begin, " to ", range.end,
                ", expected ids of parts that do not overlap");
    first += range.end - range.begin;
    ranges.push_back(range);
  }
  return ranges;
}

/// node_map or edge_map: the ranges of each type. Older DGL has a list for the only type.
DglPartition::Ids read_map(const Node& map, const std::vector<std::string>& types, std::size_t parts,
                           Index total) {
  map.check(!map.json.is_string(), "is the file ", map.json,
            ", expected ranges of ids (DGL's partition_graph with reshuffle=True)");
  map.check(map.json.is_array() || (map.json.is_object() && map.json.size() == types.size()), "is ",
            map.json.is_object() ? concat("of ", map.json.size(), " types") : map.json.type_name(),
            ", expected ranges of ids of ", types.size(), " types");
  map.check(!map.json.is_array() || types.size() == 1, "is a list, expected one for each of ", types.size(),
            " types");

  DglPartition::Ids ids;
  std::vector<Ranges> ranges;  // by type and part
  for (std::size_t t = 0; t < types.size(); ++t) {
    ranges.push_back(read_ranges(map.json.is_array() ? map : map.at(types[t]), t, parts, total));
    const auto size = [](const DglPartition::Range& range) { return range.end - range.begin; };
    ids.books.emplace_back(offsets_of_sizes(ranges.back(), size));
  }
  for (std::size_t p = 0; p < parts; ++p)
    for (std::size_t t = 0; t < types.size(); ++t) {
      const DglPartition::Range& range = ranges[t][p];
      if (range.begin == range.end) continue;
      map.check(range.begin == ids.size(), "has ids ", range.begin, " to ", range.end, " of type '", types[t],
                "' in part ", p, ", expected them to begin at ", ids.size(), ", after the ones before");
      ids.ranges.push_back(range);
    }
  map.check(ids.size() == total, "has ", ids.size(), " ids, expected ", total);
  return ids;
}

EdgeType parse_edge_type(const Node& node, const std::string& name) {
  const auto colons = std::count(name.begin(), name.end(), ':');
  node.check(colons == 0 || colons == 2, "has the type '", name,
             "', expected a name, or source:name:destination");
  if (colons == 0) return {"", name, ""};
  const auto first = name.find(':'), second = name.rfind(':');
  return {name.substr(0, first), name.substr(first + 1, second - first - 1), name.substr(second + 1)};
}

DglPartition::Part read_part(const Node& part, const std::filesystem::path& directory) {
  part.check(
      part.has("part_graph") || !part.has("part_graph_graphbolt"),
      "has a graph of GraphBolt only, expected a 'part_graph' (partition_graph with use_graphbolt=False)");
  const auto path = [&](const char* key) { return (directory / part.at(key).text()).string(); };
  return {path("part_graph"), path("node_feats"), path("edge_feats")};
}

}  // namespace

const DglPartition::Range* DglPartition::Ids::find(Index id) const {
  const auto next = std::upper_bound(ranges.begin(), ranges.end(), id,
                                     [](Index value, const Range& range) { return value < range.begin; });
  if (id < 0 || id >= size() || next == ranges.begin()) return nullptr;
  return &*std::prev(next);
}

DglPartition read_dgl_partition(const std::string& json_path) {
  const std::string text = read_text(json_path, "the JSON file of a DGL partition");
  const JsonValue file =
      JsonValue::parse(text, json_path + ": the file", "the JSON file of a DGL partition", json_path);
  const Node root{file.json(), json_path + ":"};
  DglPartition partition;
  partition.path = json_path;
  partition.name = root.at("graph_name").text();

  const Index num_parts = root.at("num_parts").integer();
  root.check(num_parts >= 1 && num_parts <= INT32_MAX, "num_parts is ", num_parts, ", expected 1 at least");
  for (Index p = 0; p < num_parts; ++p)
    partition.parts.push_back(
        read_part(root.at(concat("part-", p)), std::filesystem::path(json_path).parent_path()));
  root.check(!root.has(concat("part-", num_parts)), "there is a part-", num_parts, " and num_parts is ",
             num_parts, ", expected as many parts");

  partition.node_types =
      root.has("ntypes") ? names_by_number(root.at("ntypes")) : std::vector<std::string>{default_node_type};
  const std::vector<std::string> edge_names =
      root.has("etypes") ? names_by_number(root.at("etypes")) : std::vector<std::string>{default_edge_type};
  for (const std::string& name : edge_names) {
    partition.edge_types.push_back(parse_edge_type(root, name));
    const EdgeType& type = partition.edge_types.back();
    for (const std::string& end : {type.source, type.destination})
      root.check(
          end.empty() || std::count(partition.node_types.begin(), partition.node_types.end(), end) == 1,
          "has the edge type '", name, "' and no node type '", end, "', expected one");
  }
  partition.nodes = read_map(root.at("node_map"), partition.node_types, partition.parts.size(),
                             root.at("num_nodes").integer());
  partition.edges =
      read_map(root.at("edge_map"), edge_names, partition.parts.size(), root.at("num_edges").integer());
  return partition;
}

namespace {

/// Appends the fields of several parts to each other. A part without rows may lack them.
DataColumns join_columns(std::vector<std::pair<Index, DataColumns*>> parts, const std::string& what) {
  std::erase_if(parts, [](const auto& part) { return part.first == 0; });
  if (parts.empty()) return {};
  DataColumns joined = std::move(*parts.front().second);
  if (parts.size() == 1) return joined;
  for (auto& [name, first] : joined) {
    Index rows = 0;
    for (const auto& [num_rows, columns] : parts) {
      rows += num_rows;
      if (columns == parts.front().second) continue;
      const auto found = columns->find(name);
      require<InputError>(columns->size() == joined.size() && found != columns->end() &&
                              found->second.type == first.type && found->second.row_shape == first.row_shape,
                          what, ": the data '", name, "' are not in all parts, expected the same of each");
    }
    DataArray all(first.type, first.row_shape, rows);
    auto* out = all.bytes.data();
    for (const auto& [num_rows, columns] : parts) {
      DataArray& part = columns == parts.front().second ? first : columns->at(name);
      out = std::copy(part.bytes.begin(), part.bytes.end(), out);
      part = {};
    }
    first = std::move(all);
  }
  return joined;
}

/// The arrays array(part) of all parts, one after the other.
template <class GetArray>
Array<Index> join_arrays(std::vector<GraphData>& parts, const GetArray& array) {
  if (parts.size() == 1) return std::move(array(parts.front()));
  Array<Index> joined;
  for (GraphData& part : parts) joined.insert(joined.end(), array(part).begin(), array(part).end());
  return joined;
}

/// The type of an end of the edges is known when one of the parts knows it.
void join_end_type(std::string& known, const std::string& other, const std::string& what) {
  if (known.empty()) known = other;
  require<InputError>(other.empty() || other == known, what, ": edges end in nodes of type ", known,
                      " and of ", other, ", expected one type");
}

GraphData join_parts(std::vector<GraphData> parts, const std::string& path) {
  GraphData joined;
  for (std::size_t t = 0; t < parts.front().node_types.size(); ++t) {
    std::vector<std::pair<Index, DataColumns*>> data;
    bool ids_are_original = true;
    for (GraphData& part : parts) {
      NodeTypeData& type = part.node_types[t];
      ids_are_original = ids_are_original && type.ids_are_original;
      data.emplace_back(static_cast<Index>(type.original_ids.size()), &type.data);
    }
    const std::string name = parts.front().node_types[t].name;
    DataColumns columns = join_columns(std::move(data), concat(path, ": node type ", name));
    Array<Index> ids = join_arrays(
        parts, [&](GraphData & part) -> auto& { return part.node_types[t].original_ids; });
    joined.node_types.push_back({name, {}, std::move(ids), std::move(columns), ids_are_original});
  }
  for (std::size_t t = 0; t < parts.front().edge_types.size(); ++t) {
    std::vector<std::pair<Index, DataColumns*>> data;
    EdgeTypeData& first = parts.front().edge_types[t];
    const std::string what = concat(path, ": edge type ", first.name);
    bool ids_are_original = true;
    for (GraphData& part : parts) {
      EdgeTypeData& type = part.edge_types[t];
      ids_are_original = ids_are_original && type.ids_are_original;
      join_end_type(first.src_type, type.src_type, what);
      join_end_type(first.dst_type, type.dst_type, what);
      data.emplace_back(type.edges.size(), &type.data);
    }
    EdgeTypeData type{first.src_type, first.name, first.dst_type, {}, 0, {}};
    type.data = join_columns(std::move(data), what);
    type.ids_are_original = ids_are_original;
    for (const auto column : {&EdgeList::src, &EdgeList::dst, &EdgeList::id})
      type.edges.*column = join_arrays(
          parts, [&](GraphData & part) -> auto& { return part.edge_types[t].edges.*column; });
    joined.edge_types.push_back(std::move(type));
  }
  return joined;
}

/// Gives a rank without rows the fields of the others, without rows. Collective, inside agree().
void agree_on_columns(const Communicator& comm, DataColumns& columns, Index rows, const std::string& what) {
  const int root = comm.all_reduce(rows > 0 ? comm.rank() : comm.size() - 1, ReduceOp::min);
  auto count = static_cast<Index>(columns.size());
  comm.broadcast(std::span(&count, 1), root);
  DataColumns expected;
  auto mine = columns.begin();  // names of the root in turn
  for (Index i = 0; i < count; ++i) {
    const bool is_root = comm.rank() == root;
    const std::string name = comm.broadcast(is_root ? mine->first : std::string(), root);
    std::vector<Index> layout;  // the shape of a row and the type
    if (is_root) {
      layout = mine->second.row_shape;
      layout.push_back(static_cast<Index>(mine->second.type));
      ++mine;
    }
    auto length = static_cast<Index>(layout.size());
    comm.broadcast(std::span(&length, 1), root);
    layout.resize(length);
    comm.broadcast(std::span(layout), root);
    const auto type = static_cast<NpyType>(layout.back());
    layout.pop_back();
    expected.emplace(name, DataArray(type, std::move(layout), 0));
  }
  if (rows == 0) {
    columns = std::move(expected);
    return;
  }
  require<InputError>(columns.size() == expected.size(), what, ": there are ", columns.size(),
                      " data in one part and ", expected.size(), " in another, expected the same");
  for (const auto& [name, column] : expected) {
    const auto found = columns.find(name);
    require<InputError>(found != columns.end() && found->second.type == column.type &&
                            found->second.row_shape == column.row_shape,
                        what, ": the data '", name,
                        "' are not the same in all parts, expected the same type and shape");
  }
}

/// Where the JSON does not tell the type of an end, a rank with edges has found it. Collective, inside
/// agree().
void agree_on_end_type(const Communicator& comm, const DglPartition& partition, std::string& type,
                       const std::string& what) {
  const auto& names = partition.node_types;
  const auto mine = type.empty()
                        ? Index{-1}
                        : static_cast<Index>(std::find(names.begin(), names.end(), type) - names.begin());
  const Index common = names.size() == 1 ? 0 : comm.all_reduce(mine, ReduceOp::max);
  require<InputError>(common >= 0, what,
                      ": there are no edges and their ends have no types, expected a name such as "
                      "author:writes:paper");
  join_end_type(type, names[common], what);
}

}  // namespace

GraphData load_dgl_partition(const Communicator& comm, const std::string& json_path) {
  return comm.agree([&] {
    const DglPartition partition = read_dgl_partition(json_path);
    const auto num_parts = static_cast<Index>(partition.parts.size());
    require<InputError>(comm.size() <= num_parts, json_path, ": there are ", num_parts, " parts for ",
                        comm.size(), " ranks, expected a part for each rank at least");
    const PartitionBook parts_of_rank = PartitionBook::even(num_parts, comm.size());
    std::vector<GraphData> parts;
    for (Index p = parts_of_rank.begin(comm.rank()); p < parts_of_rank.end(comm.rank()); ++p)
      parts.push_back(read_dgl_part(partition, static_cast<int>(p)));
    GraphData mine = join_parts(std::move(parts), json_path);
    mine.name = partition.name;
    for (std::size_t t = 0; t < mine.node_types.size(); ++t) {
      NodeTypeData& nodes = mine.node_types[t];
      const std::string what = concat(json_path, ": node type ", nodes.name);
      nodes.book = partition.nodes.books[t].joined(parts_of_rank);
      nodes.ids_are_original = comm.all_reduce(nodes.ids_are_original ? 1 : 0, ReduceOp::min) == 1;
      require_permutation(comm, nodes.original_ids, nodes.book.num_nodes(), what + ": original ids");
      agree_on_columns(comm, nodes.data, static_cast<Index>(nodes.original_ids.size()), what);
    }
    for (std::size_t t = 0; t < mine.edge_types.size(); ++t) {
      EdgeTypeData& edges = mine.edge_types[t];
      const std::string what = concat(json_path, ": edge type ", edges.name);
      edges.num_edges = partition.edges.books[t].num_nodes();
      edges.ids_are_original = comm.all_reduce(edges.ids_are_original ? 1 : 0, ReduceOp::min) == 1;
      agree_on_end_type(comm, partition, edges.src_type, what);
      agree_on_end_type(comm, partition, edges.dst_type, what);
      require_permutation(comm, edges.edges.id, edges.num_edges, what + ": original ids");
      agree_on_columns(comm, edges.data, edges.edges.size(), what);
    }
    return mine;
  });
}

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
  const auto end_of = [&](Index node, std::string& end_type, Index edge) {
    const Index id = nodes.ids[node];
    const DglPartition::Range* range = partition.nodes.find(id);
    require<InputError>(range != nullptr, path, ": node ", node, " has _ID ", id, ", expected ",
                        index_range(partition.nodes.size()));
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
