#include <sar/core/error.hpp>
#include <sar/core/file.hpp>
#include <sar/graph/data/edge_index.hpp>
#include <sar/graph/data/file_name.hpp>
#include <sar/graph/data/hetero_dataset.hpp>
#include <sar/graph/data/json_value.hpp>
#include <sar/graph/io/npy_header.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

namespace fs = std::filesystem;

constexpr const char* format_name = "sar-dataset";
constexpr Index version = 1;

SourceTypes parse_types(const std::string& path) {
  const OrderedJson json = parse_json<OrderedJson>(read_text(path, "the types of a dataset directory"),
                                                   path + ": the file", "the JSON of a dataset with types");
  const JsonValue root(json, path + ": the description");
  const std::string format = root.at("format").text();
  require<InputError>(format == format_name, path, ": the format is ", format, ", expected ", format_name);
  const Index found = root.at("version").count();
  require<InputError>(found == version, path, ": the version is ", found, ", expected ", version);
  SourceTypes types;
  std::set<std::string> names;
  for (const JsonValue& value : root.at("node_types").list()) {
    const std::string name = unique_name(value.at("name"), value.at("name").text(), names);
    types.nodes.push_back({name, value.at("num_nodes").count(), {}});
  }
  require<InputError>(!types.nodes.empty(), path, ": node_types is empty, expected at least one");
  std::set<std::string> canonical;
  for (const JsonValue& value : root.at("edge_types").list()) {
    SourceEdges type{value.at("src_type").text(),
                     value.at("name").text(),
                     value.at("dst_type").text(),
                     value.at("num_edges").count(),
                     {}};
    require<InputError>(!type.name.empty(), value.place(), ".name is empty, expected a name");
    for (const std::string* end : {&type.src_type, &type.dst_type})
      require<InputError>(names.contains(*end), value.place(), ": there is no node type ", *end,
                          ", expected one of node_types");
    unique_name(value, type.canonical_name(), canonical);
    types.edges.push_back(std::move(type));
  }
  return types;
}

void expect_rows(const NpyFile& file, Index rows, const std::string& what, const std::string& description) {
  require<InputError>(!file.shape().empty() && file.num_rows() == rows, file.path(), ": shape is ",
                      shape_to_string(file.shape()), ", expected ", rows, " rows, the number of ", what,
                      " in ", description);
}

/// The names of the .npy files of a folder without their extension, sorted. None for a folder that is not
/// there.
std::vector<std::string> arrays_in(const std::string& folder) {
  std::vector<std::string> arrays;
  std::error_code unreachable;
  for (const std::string& name : names_in(folder, unreachable))
    if (name.ends_with(".npy") && !name.starts_with('.')) arrays.push_back(name.substr(0, name.size() - 4));
  std::ranges::sort(arrays);
  return arrays;
}

}  // namespace

HeteroDatasetSource::HeteroDatasetSource(const Communicator& communicator, const std::string& directory)
    : HeteroSource(communicator) {
  comm().agree([&] {
    directory_ = directory;
    fs::path path(directory);
    if (!path.has_filename()) path = path.parent_path();
    name_ = path.filename().string();
    types_ = parse_types(directory_ + "/hetero.json");
    for (SourceNodes& type : types_.nodes) open_nodes(type);
    for (SourceEdges& type : types_.edges) open_edges(type);
    require_plausible_sizes(directory_ + "/hetero.json");
    require_named_folders();
    require_same_files();
  });
}

HeteroDatasetSource::~HeteroDatasetSource() = default;

void HeteroDatasetSource::open_nodes(SourceNodes& type) {
  const std::string folder = directory_ + "/nodes/" + escaped(type.name);
  Files& files = nodes_.emplace_back();
  for (const std::string& array : arrays_in(folder)) {
    const NpyFile& file = files.try_emplace(unescaped(array), folder + "/" + array + ".npy").first->second;
    expect_rows(file, type.num_nodes, "nodes of " + type.name, directory_ + "/hetero.json");
  }
  for (const auto& [field, file] : files) type.fields.push_back(field_of(field, file));
}

void HeteroDatasetSource::open_edges(SourceEdges& type) {
  const std::string folder = directory_ + "/edges/" + escaped(type.src_type, type.name, type.dst_type);
  const NpyFile& index = edge_index_.emplace_back(folder + "/edge_index.npy", NpyOrder::c_or_fortran);
  index.expect({NpyType::int64}, 2);
  require<InputError>(index.num_rows() == 2 && index.row_size() == type.num_edges, index.path(),
                      ": shape is ", shape_to_string(index.shape()), ", expected (2, ", type.num_edges,
                      ") by the edges of ", type.canonical_name(), " in ", directory_, "/hetero.json");
  Files& files = edges_.emplace_back();
  for (const std::string& array : arrays_in(folder)) {
    if (array == "edge_index") continue;
    const std::string field = unescaped(array.starts_with("edge_") ? array.substr(5) : array);
    const std::string path = folder + "/" + array + ".npy";
    const auto [entry, added] = files.try_emplace(field, path);
    require<InputError>(added && !field.empty(), path, ": the edges of ", type.canonical_name(),
                        " have data named '", field, "' already, expected one file for each name");
    expect_rows(entry->second, type.num_edges, "edges of " + type.canonical_name(),
                directory_ + "/hetero.json");
  }
  for (const auto& [field, file] : files) type.fields.push_back(field_of(field, file));
}

/// A folder of a type that the description does not name is one that was forgotten there.
void HeteroDatasetSource::require_named_folders() const {
  std::set<std::string> nodes, edges;
  for (const SourceNodes& type : types_.nodes) nodes.insert(escaped(type.name));
  for (const SourceEdges& type : types_.edges) edges.insert(escaped(type.src_type, type.name, type.dst_type));
  for (const auto& [folder, known] : {std::pair{"/nodes", &nodes}, {"/edges", &edges}}) {
    std::error_code error;
    for (const std::string& name : names_in(directory_ + folder, error)) {
      const std::string path = concat(directory_, folder, "/", name);
      require<InputError>(known->contains(name) || name.starts_with('.') || !fs::is_directory(path, error),
                          path, ": hetero.json has no type of this name, expected one for each folder");
    }
  }
}

/// Ranks that saw different files would wait for each other for ever, or train on a mixture. Collective.
void HeteroDatasetSource::require_same_files() const {
  std::string mine = describe_types();
  const auto add = [&](const std::deque<Files>& of_types) {
    for (const Files& files : of_types)
      for (const auto& [field, file] : files)
        mine += concat(" ", field, shape_to_string(file.shape()), to_string(file.type()));
  };
  add(nodes_);
  add(edges_);
  const std::string expected = comm().broadcast(mine, 0);
  require<InputError>(mine == expected, directory_, ": rank ", comm().rank(), " finds ", mine, ", expected ",
                      expected, " as on rank 0");
}

std::string HeteroDatasetSource::description() const {
  return concat("dataset directory ", name_, ": ", describe_types());
}

EdgeList HeteroDatasetSource::read_edges_of(std::size_t type) {
  return comm().agree([&] {
    const SourceEdges& edges = types_.edges.at(type);
    const PartitionBook slices = PartitionBook::even(edges.num_edges, comm().size());
    return read_edge_range(edge_index_[type], types_.nodes[types_.node_type(edges.src_type)].num_nodes,
                           types_.nodes[types_.node_type(edges.dst_type)].num_nodes,
                           slices.begin(comm().rank()), slices.end(comm().rank()));
  });
}

DataArray HeteroDatasetSource::read(const Files& files, const std::string& of, const std::string& field,
                                    std::span<const Index> rows) const {
  const auto found = files.find(field);
  require<InputError>(found != files.end(), directory_, ": there are no data of ", of, " named ", field);
  return read_rows(found->second, rows);
}
DataArray HeteroDatasetSource::read_node_data_of(std::size_t type, const std::string& field,
                                                 std::span<const Index> nodes) {
  return comm().agree([&] { return read(nodes_.at(type), types_.nodes.at(type).name, field, nodes); });
}
DataArray HeteroDatasetSource::read_edge_data_of(std::size_t type, const std::string& field,
                                                 std::span<const Index> edges) {
  return comm().agree(
      [&] { return read(edges_.at(type), types_.edges.at(type).canonical_name(), field, edges); });
}

std::string format_dataset_types(const SourceTypes& types) {
  OrderedJson json{{"format", format_name}, {"version", version}};
  json["node_types"] = OrderedJson::array();
  for (const SourceNodes& type : types.nodes)
    json["node_types"].push_back({{"name", type.name}, {"num_nodes", type.num_nodes}});
  json["edge_types"] = OrderedJson::array();
  for (const SourceEdges& type : types.edges)
    json["edge_types"].push_back({{"src_type", type.src_type},
                                  {"name", type.name},
                                  {"dst_type", type.dst_type},
                                  {"num_edges", type.num_edges}});
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace sar
