// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/json.hpp>
#include <sar/core/text.hpp>
#include <sar/graph/data/partition_description.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

constexpr const char* format_name = "sar-partition";
constexpr const char* sparse_layout = "csr";
/// Version 2: some fields of nodes are sparse rows.
constexpr Index dense_version = 1, sparse_version = 2;

std::vector<DataField> parse_fields(const JsonValue& list, Index num_rows, bool may_be_sparse) {
  std::vector<DataField> fields;
  std::set<std::string> names;
  for (const JsonValue& value : list.list()) {
    DataField& field = fields.emplace_back();
    field.name = unique_name(value.at("name"), value.at("name").text(), names);
    const std::string dtype = value.at("dtype").text();
    const std::optional<NpyType> type = parse_npy_name(dtype);
    require<InputError>(type.has_value(), value.place(), ".dtype is ", dtype,
                        ", expected the name of a NumPy type such as float32");
    field.type = *type;
    field.row_shape = value.at("row_shape").all<&JsonValue::count>();
    field.is_sparse = value.has("layout");
    if (field.is_sparse)
      require<InputError>(may_be_sparse && value.at("layout").text() == sparse_layout, value.place(),
                          ".layout is ", value.at("layout").text(), ", expected ",
                          may_be_sparse ? sparse_layout : "none");
    for (const std::vector<Index>& shape : {field.row_shape, shape_of_rows(num_rows, field.row_shape)})
      static_cast<void>(checked_num_elements(shape, field.type, value.place()));
  }
  return fields;
}

PartitionBook parse_book(const JsonValue& offsets, int num_parts) {
  const std::vector<Index> numbers = offsets.all<&JsonValue::count>();
  require<InputError>(static_cast<Index>(numbers.size()) == Index{num_parts} + 1, offsets.place(), " has ",
                      numbers.size(), " elements, expected ", Index{num_parts} + 1, ", one more than parts");
  require<InputError>(numbers.front() == 0 && std::is_sorted(numbers.begin(), numbers.end()), offsets.place(),
                      " starts at ", numbers.front(), " and ends at ", numbers.back(),
                      ", expected numbers that start at 0 and do not decrease");
  return PartitionBook(numbers);
}

void parse_node_types(const JsonValue& root, PartitionDescription& description) {
  std::set<std::string> names;
  for (const JsonValue& value : root.at("node_types").list()) {
    NodeTypeData& type = description.graph.node_types.emplace_back();
    type.name = unique_name(value.at("name"), value.at("name").text(), names);
    type.book = parse_book(value.at("offsets"), description.num_parts);
    const Index num_nodes = value.at("num_nodes").count();
    require<InputError>(num_nodes == type.book.num_nodes(), value.place(), ".num_nodes is ", num_nodes,
                        ", expected ", type.book.num_nodes(), " as the last of its offsets");
    type.unread = parse_fields(value.at("data"), num_nodes, true);
  }
}

void parse_edge_types(const JsonValue& root, PartitionDescription& description) {
  std::set<std::string> names;
  for (const JsonValue& value : root.at("edge_types").list()) {
    EdgeTypeData& type = description.graph.edge_types.emplace_back();
    for (const auto& [key, text] :
         {std::pair{"src_type", &type.src_type}, {"name", &type.name}, {"dst_type", &type.dst_type}}) {
      *text = value.at(key).text();
      require<InputError>(!text->empty(), value.place(), ".", key, " is empty, expected a name");
    }
    unique_name(value, type.canonical_name(), names);
    for (const std::string* end : {&type.src_type, &type.dst_type})
      require<InputError>(
          std::any_of(description.graph.node_types.begin(), description.graph.node_types.end(),
                      [&](const auto& nodes) { return nodes.name == *end; }),
          value.place(), ": there is no node type ", *end, ", expected one of node_types");
    const auto& per_part =
        description.edges_per_part.emplace_back(value.at("edges_per_part").all<&JsonValue::count>());
    require<InputError>(static_cast<int>(per_part.size()) == description.num_parts, value.place(),
                        ".edges_per_part has ", per_part.size(), " elements, expected ",
                        description.num_parts);
    for (const Index count : per_part)
      require<InputError>(!__builtin_add_overflow(type.num_edges, count, &type.num_edges), value.place(),
                          ".edges_per_part sums to more than 2^63 edges");
    const Index num_edges = value.at("num_edges").count();
    require<InputError>(num_edges == type.num_edges, value.place(), ".num_edges is ", num_edges,
                        ", expected ", type.num_edges, ", the sum of edges_per_part");
    type.unread = parse_fields(value.at("data"), num_edges, false);
    if (value.has("first_added_id")) type.first_added_id = value.at("first_added_id").count();
  }
}

std::uint64_t parse_checksum(const JsonValue& value) {
  const std::string text = value.text();
  const auto checksum = to_number<std::uint64_t>(text, 16);
  require<InputError>(checksum.has_value(), value.place(), " is ", text.substr(0, 40),
                      ", expected a hexadecimal number");
  return *checksum;
}

OrderedJson format_fields(const std::vector<DataField>& fields) {
  OrderedJson list = OrderedJson::array();
  for (const DataField& field : fields) {
    OrderedJson& json = list.emplace_back(
        OrderedJson{{"name", field.name}, {"dtype", to_string(field.type)}, {"row_shape", field.row_shape}});
    if (field.is_sparse) json["layout"] = sparse_layout;
  }
  return list;
}

std::vector<Index> offsets_of(const PartitionBook& book) {
  std::vector<Index> offsets{0};
  for (int p = 0; p < book.num_parts(); ++p) offsets.push_back(book.end(p));
  return offsets;
}

}  // namespace

PartitionDescription parse_partition_description(const std::string& text, const std::string& path) {
  const JsonValue root = JsonValue::parse(text, path + ": the file", "the JSON of a partition directory",
                                          path + ": the description");
  const std::string format = root.at("format").text();
  require<InputError>(format == format_name, path, ": the format is ", format, ", expected ", format_name);
  const Index found = root.at("version").count();
  require<InputError>(found == dense_version || found == sparse_version, path, ": the version is ", found,
                      ", expected ", dense_version, " or ", sparse_version);

  PartitionDescription description;
  description.graph.name = root.at("name").text();
  const Index num_parts = root.at("num_parts").count();
  require<InputError>(1 <= num_parts && num_parts < std::numeric_limits<int>::max(), path, ": num_parts is ",
                      num_parts, ", expected at least 1");
  description.num_parts = static_cast<int>(num_parts);
  parse_node_types(root, description);
  require<InputError>(!description.graph.node_types.empty(), path,
                      ": node_types is empty, expected at least one");
  parse_edge_types(root, description);
  if (root.has("checksums"))
    for (const JsonValue& value : root.at("checksums").list())
      description.checksums.push_back(parse_checksum(value));
  require<InputError>(
      description.checksums.empty() || static_cast<int>(description.checksums.size()) == num_parts, path,
      ": checksums has ", description.checksums.size(), " elements, expected ", num_parts);
  if (root.has("info")) description.info = root.at("info").texts();
  return description;
}

PartitionDescription read_partition_description(const std::string& directory) {
  const std::string path = directory + "/partition.json";
  return parse_partition_description(
      read_text(path, "the description of a partition directory", most_description_bytes), path);
}

PartitionDescription share_partition_description(const Communicator& comm, const std::string& directory) {
  const std::string path = directory + "/partition.json";
  std::string text;
  if (comm.rank() == 0)
    text = read_text(path, "the description of a partition directory", most_description_bytes);
  return parse_partition_description(comm.broadcast(text, 0), path);
}

std::string format_partition_description(const PartitionDescription& description) {
  const bool is_sparse = std::ranges::any_of(description.graph.node_types, [](const NodeTypeData& type) {
    return std::ranges::any_of(type.unread, &DataField::is_sparse);
  });
  OrderedJson json{{"format", format_name},
                   {"version", is_sparse ? sparse_version : dense_version},
                   {"name", description.graph.name},
                   {"num_parts", description.num_parts}};
  json["node_types"] = OrderedJson::array();
  for (const NodeTypeData& type : description.graph.node_types)
    json["node_types"].push_back({{"name", type.name},
                                  {"num_nodes", type.num_nodes()},
                                  {"offsets", offsets_of(type.book)},
                                  {"data", format_fields(type.unread)}});
  json["edge_types"] = OrderedJson::array();
  for (std::size_t k = 0; k < description.edges_per_part.size(); ++k) {
    const EdgeTypeData& type = description.graph.edge_types[k];
    const std::vector<Index>& per_part = description.edges_per_part[k];
    OrderedJson& made = json["edge_types"].emplace_back(
        OrderedJson{{"src_type", type.src_type},
                    {"name", type.name},
                    {"dst_type", type.dst_type},
                    {"num_edges", std::accumulate(per_part.begin(), per_part.end(), Index{0})},
                    {"edges_per_part", per_part},
                    {"data", format_fields(type.unread)}});
    if (type.first_added_id < std::numeric_limits<Index>::max()) made["first_added_id"] = type.first_added_id;
  }
  if (!description.checksums.empty()) {
    json["checksums"] = OrderedJson::array();
    for (const std::uint64_t checksum : description.checksums)
      json["checksums"].push_back(exact_text(checksum, 16));
  }
  json["info"] = OrderedJson::object();
  for (const auto& [key, text] : description.info) json["info"][key] = text;
  return format_json(json);
}

PartitionDescription describe_partition(const GraphData& graph) {
  PartitionDescription description;
  description.graph.name = graph.name;
  for (const NodeTypeData& type : graph.node_types) {
    description.num_parts = type.book.num_parts();
    description.graph.node_types.push_back({.name = type.name, .book = type.book, .unread = fields_of(type)});
  }
  for (const EdgeTypeData& type : graph.edge_types)
    description.graph.edge_types.push_back({.src_type = type.src_type,
                                            .name = type.name,
                                            .dst_type = type.dst_type,
                                            .first_added_id = type.first_added_id,
                                            .unread = fields_of(type.data)});
  description.edges_per_part.resize(graph.edge_types.size());
  return description;
}
}}  // namespace sar
