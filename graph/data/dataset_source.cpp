// SPDX-License-Identifier: MIT
#include <sar/comm/rows/new_directory.hpp>
#include <sar/comm/rows/shared_npy.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/json.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/graph/data/columns.hpp>
#include <sar/graph/data/dataset_source.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

namespace fs = std::filesystem;

constexpr const char* format_name = "sar-dataset";
constexpr Index format_version = 1;

GraphData parse_types(const std::string& path, int ranks) {
  const JsonValue root =
      JsonValue::parse(read_text(path, "the types of a dataset directory"), path + ": the file",
                       "the JSON of a dataset with types", path + ": the description");
  const std::string format = root.at("format").text();
  require<InputError>(format == format_name, path, ": the format is ", format, ", expected ", format_name);
  const Index found = root.at("version").count();
  require<InputError>(found == format_version, path, ": the version is ", found, ", expected ",
                      format_version);
  GraphData types;
  std::set<std::string> names;
  for (const JsonValue& value : root.at("node_types").list()) {
    const std::string name = unique_name(value.at("name"), value.at("name").text(), names);
    types.node_types.push_back(
        {.name = name, .book = PartitionBook::even(value.at("num_nodes").count(), ranks)});
  }
  require<InputError>(!types.node_types.empty(), path, ": node_types is empty, expected at least one");
  std::set<std::string> canonical;
  for (const JsonValue& value : root.at("edge_types").list()) {
    EdgeTypeData type{.src_type = value.at("src_type").text(),
                      .name = value.at("name").text(),
                      .dst_type = value.at("dst_type").text(),
                      .num_edges = value.at("num_edges").count()};
    require<InputError>(!type.name.empty(), value.place(), ".name is empty, expected a name");
    for (const std::string* end : {&type.src_type, &type.dst_type})
      require<InputError>(names.contains(*end), value.place(), ": there is no node type ", *end,
                          ", expected one of node_types");
    unique_name(value, type.canonical_name(), canonical);
    types.edge_types.push_back(std::move(type));
  }
  return types;
}

void require_edge_index(const NpyFile& file) {
  const std::vector<Index>& shape = file.shape();
  const bool is_matrix = shape.size() == 2;
  require<InputError>(is_matrix && shape[0] == 2, file.path(), ": shape is ", shape_to_string(shape),
                      ", expected (2, number of edges)",
                      is_matrix && shape[1] == 2 ? ", as numpy.save(path, edge_index.T) writes it" : "");
}

void expect_length(const NpyFile& file, Index length, const char* one_for_each, const NpyFile& other) {
  require<InputError>(!file.shape().empty(), file.path(), ": the array is a number, expected one for each ",
                      one_for_each, " of ", other.path());
  require<InputError>(file.num_rows() == length, file.path(), ": length is ", file.num_rows(), ", expected ",
                      length, ", one for each ", one_for_each, " of ", other.path());
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

void list_fields(const std::map<std::string, NpyFile>& files, std::vector<DataField>& fields) {
  for (const auto& [field, file] : files) fields.push_back(field_of(field, file));
}

}  // namespace

DatasetSource::DatasetSource(const Communicator& communicator, const std::string& directory,
                             const FieldNames& names, bool for_training)
    : GraphSource(communicator, "dataset directory", last_part_of(directory)), directory_(directory) {
  comm().agree([&] {
    if (is_there(directory_ + "/hetero.json") && !is_there(directory_ + "/edge_index.npy"))
      open_types();
    else
      open_files(names, for_training);
    require_same_files();
  });
}

/// The name of the field for `key`: the given one, or the first of two usual names that has a file.
std::string DatasetSource::name_of(const FieldNames& names, const std::string& key,
                                   const std::string& other) const {
  if (const auto given = names.find(key); given != names.end()) return given->second;
  const auto path = [&](const std::string& field) { return directory_ + "/" + field + ".npy"; };
  return !is_there(path(key)) && is_there(path(other)) ? other : key;
}

void DatasetSource::open_files(const FieldNames& names, bool for_training) {
  const NpyFile& edge_index = edge_index_.emplace_back(directory_ + "/edge_index.npy");
  require_edge_index(edge_index);
  Files& of_nodes = nodes_.emplace_back();
  const std::string features_name = name_of(names, "features", "feat");
  const NpyFile& features =
      of_nodes.try_emplace(features_name, concat(directory_, "/", features_name, ".npy")).first->second;
  require<InputError>(!features.shape().empty() && features.row_size() > 0, features.path(), ": shape is ",
                      shape_to_string(features.shape()), ", expected (number of nodes, number of features)");
  types_.node_types.emplace_back().book = slices_of(features.num_rows());
  types_.edge_types.emplace_back().num_edges = edge_index.row_size();
  for (const auto& [key, other] : {std::pair{"labels", "label"},
                                   {"train_mask", "train_mask"},
                                   {"val_mask", "val_mask"},
                                   {"test_mask", "test_mask"}}) {
    const std::string name = name_of(names, key, other), path = concat(directory_, "/", name, ".npy");
    if (!for_training && !is_there(path)) continue;
    const NpyFile& file = of_nodes.try_emplace(name, path).first->second;
    expect_length(file, num_nodes(), "row", features);
  }
  Files& of_edges = edges_.emplace_back();
  for (const char* key : {"weight", "labels", "type", "split", "train_mask", "val_mask", "test_mask"}) {
    const auto named = names.find(key == std::string("weight") ? key : concat("edge_", key));
    const std::string name = named == names.end() ? key : named->second;
    const std::string path = concat(directory_, "/edge_", name, ".npy");
    if (!is_there(path)) continue;
    const NpyFile& file = of_edges.try_emplace(name, path).first->second;
    expect_length(file, num_edges(), "edge", edge_index);
  }
  open_others();
  list_fields(of_nodes, types_.node_types[0].unread);
  list_fields(of_edges, types_.edge_types[0].unread);
}

/// Opens the other files with one row for each node or edge; files of other forms are not part of the
/// dataset.
void DatasetSource::open_others() {
  std::error_code unreachable;
  for (const std::string& name : names_in(directory_, unreachable)) {
    const fs::path path = fs::path(directory_) / name;
    std::string field = path.stem().string();
    if (path.extension() != ".npy" || field == "edge_index" || nodes_[0].contains(field)) continue;
    const bool of_edges = field.starts_with("edge_");
    if (of_edges) field.erase(0, 5);
    Files& files = (of_edges ? edges_ : nodes_)[0];
    if (field.empty() || files.contains(field)) continue;
    try {
      const NpyFile file(path.string());
      if (!file.shape().empty() && file.num_rows() == (of_edges ? num_edges() : num_nodes()))
        files.try_emplace(field, path.string());
    } catch (const InputError&) {  // a pickle, say
    }
  }
}

void DatasetSource::open_types() {
  GraphData types = parse_types(directory_ + "/hetero.json", comm().size());
  types_.node_types = std::move(types.node_types);
  types_.edge_types = std::move(types.edge_types);
  for (NodeTypeData& type : types_.node_types) open_nodes(type);
  for (EdgeTypeData& type : types_.edge_types) open_edges(type);
  require_plausible_sizes(directory_ + "/hetero.json");
  require_named_folders();
}

void DatasetSource::open_nodes(NodeTypeData& type) {
  const std::string folder = directory_ + "/nodes/" + escaped(type.name);
  Files& files = nodes_.emplace_back();
  for (const std::string& array : arrays_in(folder)) {
    const NpyFile& file = files.try_emplace(unescaped(array), folder + "/" + array + ".npy").first->second;
    expect_rows(file, type.num_nodes(), "nodes of " + type.name, directory_ + "/hetero.json");
  }
  list_fields(files, type.unread);
}

void DatasetSource::open_edges(EdgeTypeData& type) {
  const std::string folder = directory_ + "/edges/" + escaped(type.src_type, type.name, type.dst_type);
  const NpyFile& index = edge_index_.emplace_back(folder + "/edge_index.npy");
  require_edge_index(index);
  require<InputError>(index.row_size() == type.num_edges, index.path(), ": shape is ",
                      shape_to_string(index.shape()), ", expected (2, ", type.num_edges, ") by the edges of ",
                      type.canonical_name(), " in ", directory_, "/hetero.json");
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
  list_fields(files, type.unread);
}

/// A folder of a type that the description does not name is one that was forgotten there.
void DatasetSource::require_named_folders() const {
  std::set<std::string> nodes, edges;
  for (const NodeTypeData& type : types_.node_types) nodes.insert(escaped(type.name));
  for (const EdgeTypeData& type : types_.edge_types)
    edges.insert(escaped(type.src_type, type.name, type.dst_type));
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
void DatasetSource::require_same_files() const {
  std::string sizes = types_.describe();
  if (types_.is_homogeneous())
    sizes =
        concat(num_nodes(), " nodes, ", num_edges(), " edges, ",
               nodes_[0].contains("features") ? nodes_[0].at("features").row_size() : 0,
               " feature columns and ", edges_[0].contains("weight") ? "edge weights" : "no edge weights");
  std::string others = "the files";
  for (const auto& [prefix, of_types] : {std::pair{" ", &nodes_}, {" edge_", &edges_}})
    for (const Files& files : *of_types)
      for (const auto& [field, file] : files)
        others += concat(prefix, field, shape_to_string(file.shape()), to_string(file.type()));
  const std::string directory = comm().broadcast(directory_, 0);
  for (const std::string& mine : {sizes, others}) {
    const std::string expected = comm().broadcast(mine, 0);
    require<InputError>(mine == expected, directory, ": rank ", comm().rank(), " finds ", mine, ", expected ",
                        expected, " as on rank 0");
  }
}

EdgeList DatasetSource::read_edges(std::size_t type) {
  return comm().agree([&] {
    const EdgeTypeData& edges = types_.edge_types.at(type);
    const PartitionBook shares = slices_of(edges.num_edges);
    return read_edge_range(edge_index_[type], types_.node_type(edges.src_type).num_nodes(),
                           types_.node_type(edges.dst_type).num_nodes(), shares.begin(comm().rank()),
                           shares.end(comm().rank()));
  });
}

DataArray DatasetSource::read(const Files& files, const std::string& of, const std::string& field,
                              std::span<const Index> rows) const {
  const auto found = files.find(field);
  require<InputError>(found != files.end(), directory_, ": there are no data",
                      types_.is_homogeneous() ? "" : " of " + of, " named ", field);
  return read_rows(found->second, rows);
}
DataArray DatasetSource::read_node_data(std::size_t type, const std::string& field,
                                        std::span<const Index> nodes) {
  return comm().agree([&] { return read(nodes_.at(type), types_.node_types.at(type).name, field, nodes); });
}
DataArray DatasetSource::read_edge_data(std::size_t type, const std::string& field,
                                        std::span<const Index> edges) {
  return comm().agree(
      [&] { return read(edges_.at(type), types_.edge_types.at(type).canonical_name(), field, edges); });
}

std::string DatasetSource::place_of(const std::string& field) const {
  if (types_.node_types[0].name != default_node_type) return GraphSource::place_of(field);
  return directory_ + (nodes_[0].contains(field) || !edges_[0].contains(field) ? "/" : "/edge_") + field +
         ".npy";
}

std::string format_dataset_types(const GraphData& types) {
  OrderedJson json{{"format", format_name}, {"version", format_version}};
  json["node_types"] = OrderedJson::array();
  for (const NodeTypeData& type : types.node_types)
    json["node_types"].push_back({{"name", type.name}, {"num_nodes", type.num_nodes()}});
  json["edge_types"] = OrderedJson::array();
  for (const EdgeTypeData& type : types.edge_types)
    json["edge_types"].push_back({{"src_type", type.src_type},
                                  {"name", type.name},
                                  {"dst_type", type.dst_type},
                                  {"num_edges", type.num_edges}});
  return format_json(json);
}

namespace {

/// Reads the ends of edges [begin, end). NumPy writes the transpose of an [E, 2] array in Fortran order; then
/// the two ends of an edge lie side by side.
void read_ends(const NpyFile& edge_index, Index begin, Index end, EdgeList& edges) {
  if (!edge_index.fortran_order()) {
    edge_index.read(begin, end, std::span<Index>(edges.src));
    edge_index.read(edge_index.row_size() + begin, edge_index.row_size() + end, std::span<Index>(edges.dst));
    return;
  }
  constexpr Index chunk = Index{1} << 16;
  std::vector<Index> pairs;
  for (Index first = begin; first < end; first += chunk) {
    const Index count = std::min(chunk, end - first);
    pairs.resize(2 * count);
    edge_index.read(2 * first, 2 * (first + count), std::span<Index>(pairs));
    for (Index i = 0; i < count; ++i) {
      edges.src[first - begin + i] = pairs[2 * i];
      edges.dst[first - begin + i] = pairs[2 * i + 1];
    }
  }
}

}  // namespace

void require_nodes(const std::string& place, Index first_id, std::span<const Index> src,
                   std::span<const Index> dst, Index num_sources, Index num_destinations) {
  for (std::size_t e = 0; e < src.size(); ++e)
    for (const auto& [node, nodes] : {std::pair{src[e], num_sources}, {dst[e], num_destinations}})
      if (node < 0 || node >= nodes)
        throw InputError(concat(place, ": edge ", first_id + static_cast<Index>(e), " is (", src[e], ", ",
                                dst[e], "), but there is no node ", node, ", expected ", index_range(nodes)));
}

EdgeList read_edge_range(const NpyFile& edge_index, Index num_sources, Index num_destinations, Index begin,
                         Index end) {
  EdgeList edges;
  edges.src.resize(end - begin);
  edges.dst.resize(end - begin);
  edges.id = consecutive(begin, end - begin);
  read_ends(edge_index, begin, end, edges);
  require_nodes(edge_index.path(), begin, edges.src, edges.dst, num_sources, num_destinations);
  return edges;
}

namespace {

/// Each rank writes an even share of the rows, in chunks of about 16 MiB. read(numbers) is collective.
template <class Read>
void write_field(const Communicator& comm, const std::string& path, const DataField& field, Index rows,
                 const Read& read) {
  SharedNpyFile file(comm, path, shape_of_rows(rows, field.row_shape), field.type);
  for_each_chunk(comm, field, rows, [&](const Array<Index>& numbers, Index first) {
    const DataArray data = read(numbers);
    file.write(first * field.row_size(), data.bytes);
  });
  file.commit();
}

void write_edges(GraphSource& source, std::size_t type, Index num_edges, const std::string& path) {
  const Communicator& comm = source.comm();
  const std::vector<Index> shape{2, num_edges};
  EdgeList edges = source.read_edges(type);
  SharedNpyFile file(comm, path, shape, NpyType::int64);
  // the edges of a rank mostly have consecutive ids: runs of these are written at once
  for (Index begin = 0, end = 0; begin < edges.size(); begin = end) {
    for (end = begin + 1; end < edges.size() && edges.id[end] == edges.id[end - 1] + 1;) ++end;
    const Index first = edges.id[begin];
    const auto bytes = [&](const Array<Index>& column) {
      return std::as_bytes(std::span(column).subspan(begin, end - begin));
    };
    require<InputError>(0 <= first && edges.id[end - 1] < num_edges, source.name(), ": edge id ", first,
                        ", expected ids below ", num_edges);
    file.write(first, bytes(edges.src));
    file.write(num_edges + first, bytes(edges.dst));
  }
  file.commit();
}

/// Collective.
void make_directory(const Communicator& comm, const std::string& path) {
  comm.agree([&] {
    if (comm.rank() == 0) make_directories(path);
  });
}

/// Writes edges and data; the arguments say the folder of a type and the file of a field. Collective.
template <class Nodes, class Edges, class File>
void write_types(GraphSource& source, const Nodes& nodes_folder, const Edges& edges_folder,
                 const File& file) {
  const Communicator& comm = source.comm();
  const GraphData& types = source.types();
  for (const EdgeTypeData& type : types.edge_types) {
    std::set<std::string> files{"edge_index.npy"};
    for (const DataField& field : type.unread)
      require<InputError>(files.insert(file("edge_", field.name)).second, source.name(),
                          ": edge data are called '", field.name, "', whose file ", file("edge_", field.name),
                          " has something else, expected another name");
  }
  for (std::size_t t = 0; t < types.node_types.size(); ++t) {
    const std::string here = nodes_folder(types.node_types[t]);
    make_directory(comm, here);
    for (const DataField& field : types.node_types[t].unread)
      write_field(comm, here + "/" + file("", field.name), field, types.node_types[t].num_nodes(),
                  [&](const Array<Index>& rows) { return source.read_node_data(t, field.name, rows); });
  }
  for (std::size_t k = 0; k < types.edge_types.size(); ++k) {
    const std::string here = edges_folder(types.edge_types[k]);
    make_directory(comm, here);
    write_edges(source, k, types.edge_types[k].num_edges, here + "/edge_index.npy");
    for (const DataField& field : types.edge_types[k].unread)
      write_field(comm, here + "/" + file("edge_", field.name), field, types.edge_types[k].num_edges,
                  [&](const Array<Index>& rows) { return source.read_edge_data(k, field.name, rows); });
  }
}

}  // namespace

void write_dataset(GraphSource& source, const std::string& directory) {
  const Communicator& comm = source.comm();
  comm.agree([&] {
    NewDirectory out(comm, directory);
    const GraphData& types = source.types();
    if (types.is_homogeneous() && types.node_types[0].name == default_node_type &&
        types.edge_types[0].name == default_edge_type) {
      const auto folder = [&](const auto&) { return out.path(); };
      write_types(source, folder, folder, [&](const std::string& prefix, const std::string& name) {
        require<InputError>(!name.empty() && name[0] != '.' && name.find('/') == std::string::npos,
                            source.name(), ": data are called '", name, "', expected the name of a file");
        require<InputError>(!prefix.empty() || !name.starts_with("edge_"), source.name(),
                            ": node data are called '", name,
                            "', which is read as data of edges, expected a name without edge_");
        return (name.starts_with(prefix) ? name : prefix + name) + ".npy";
      });
    } else {
      write_types(
          source, [&](const NodeTypeData& type) { return out.path() + "/nodes/" + escaped(type.name); },
          [&](const EdgeTypeData& type) {
            return out.path() + "/edges/" + escaped(type.src_type, type.name, type.dst_type);
          },
          [](const std::string& prefix, const std::string& name) { return escaped(prefix + name) + ".npy"; });
      comm.agree([&] {
        if (comm.rank() == 0) write_text(out.path() + "/hetero.json", format_dataset_types(types));
      });
    }
    out.commit();
  });
}
}}  // namespace sar
