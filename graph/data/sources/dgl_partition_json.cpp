// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/json_value.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/sources/dgl_partition_json.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>

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

}}  // namespace sar
