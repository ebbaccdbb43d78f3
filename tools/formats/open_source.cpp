// SPDX-License-Identifier: MIT
#include "open_source.hpp"

#include "column_names.hpp"
#include "edge_list_source.hpp"
#include "formats/arrays/npz_source.hpp"
#include "formats/ogb/ogb_source.hpp"
#include "formats/packed/npz.hpp"
#include "formats/packed/parquet_table.hpp"
#include "formats/packed/zip_file.hpp"
#include "formats/samples/sample_tables.hpp"
#include "formats/tables/node_table.hpp"
#include "matrix_market.hpp"
#include "other_formats.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/graph/data/dataset_source.hpp>
#include <sar/graph/data/dgl_partition.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>

namespace sar::formats {
namespace {

/// The one file in a directory that is called .json; empty for none or several.
std::string only_json(const std::string& directory) {
  std::string only;
  for (const std::string& name : names_in_folder(directory)) {
    if (!name.ends_with(".json")) continue;
    if (!only.empty()) return "";
    only = directory + "/" + name;
  }
  return only;
}

/// By its name, or by the banner "%%MatrixMarket", in capitals or not.
bool is_matrix_market(const std::string& path) {
  if (path.ends_with(".mtx") || path.ends_with(".mtx.gz")) return true;
  return lower_case(read_beginning(path, 14)) == "%%matrixmarket";
}

bool is_zip(const std::string& path) {
  return !is_folder(path) && begins_as_zip(read_beginning(path, 4));
}
bool is_npz(const std::string& path) {
  return is_zip(path) && !NpzFile(path).members().empty();
}

/// The folder in a zip archive that has raw/, as OGB's have: "arxiv.zip/arxiv". Throws InputError unless
/// there is one.
std::string ogb_folder_in(const std::string& path) {
  const std::set<std::string> folders = folders_with(path, {"/raw/"});
  require<InputError>(folders.size() == 1, path, ": the zip archive has ",
                      folders.empty() ? "no folder raw/" : "several folders with raw/: " + joined(folders),
                      " and no .npy files, expected an OGB dataset as it is downloaded, or NumPy's arrays");
  return *folders.begin();
}

/// Throws InputError for a path that is no graph which open_source reads, and says why. Local.
void require_readable(const FoundDataset& found) {
  const std::string& path = found.path;
  require<InputError>(is_there(path), path, ": there is no such file or directory");
  require<InputError>(!found.is_partitioned(), path,
                      ": the graph is partitioned already, expected one that is not");
  if (found.kind != DatasetKind::unknown || is_there(path + "/raw") || is_parquet(path)) return;
  if (is_folder(path)) {
    if (const std::string json = only_json(path); !json.empty()) static_cast<void>(read_dgl_partition(json));
    require<InputError>(!is_tu_dataset(path), path,
                        ": is a TU dataset of graph samples, expected --task graph, or a graph");
    throw InputError(
        path +
        ": the directory has no edge_index.npy, no hetero.json, no raw/, no .parquet files and no JSON file "
        "of a partition, expected a dataset directory, an OGB folder, or to train from, a partition");
  }
  if (!path.ends_with(".json")) return;
  try {
    static_cast<void>(read_dgl_partition(path));  // says what is wrong
  } catch (const InputError& error) {
    throw InputError(
        concat(error.what(), " (lists of features of nodes: --node-features, beside a graph file)"));
  }
}

std::unique_ptr<GraphSource> open_ogb(const Communicator& comm, const std::string& path,
                                      const SourceOptions& options) {
  std::string folder = path;
  comm.agree([&] {
    if (is_zip(path)) folder = ogb_folder_in(path);
  });
  return open_ogb_source(comm, folder, options);
}
/// Refuses files of masks and weights, of a type, that have names which only other formats know. Local.
void refuse_other_names(const std::string& folder, const SourceOptions& options,
                        const std::vector<DataField>& fields, bool of_edges) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(fields, name, &DataField::name) != fields.end();
  };
  const char* const prefix = of_edges ? "edge_" : "";
  for (const RoleNames& role : role_names()) {
    const std::string key(of_edges ? role.key : role.field);
    const bool is_weight = of_edges && role.role == ColumnRole::weight;
    if (!(is_mask(role.role) || (is_weight && options.edge_weights)) || has(role.field) ||
        options.fields.contains(key))
      continue;
    for (const DataField& field : fields)
      require<InputError>(
          field.name == "edge_weight" ||               // is read
              (is_weight && field.row_size() != 1) ||  // are no weights
              !(of_edges ? usual_role(field.name, false) == role.role : is_usual(role, field.name)) ||
              std::ranges::any_of(options.fields, [&](const auto& of) { return of.second == field.name; }),
          folder, "/", prefix, field.name, ".npy: is not read, expected ", prefix, role.field,
          ".npy, or --fields ", key, "=", field.name);
  }
}

std::unique_ptr<GraphSource> open_dataset(const Communicator& comm, const std::string& path,
                                          const SourceOptions& options) {
  auto source = std::make_unique<DatasetSource>(comm, path, options.fields);
  const bool has_types = is_there(path + "/hetero.json");
  for (const NodeTypeData& type : source->types().node_types)
    refuse_other_names(has_types ? path + "/nodes/" + escaped(type.name) : path, options, type.unread, false);
  for (const EdgeTypeData& type : source->types().edge_types)
    refuse_other_names(has_types ? path + "/edges/" + escaped(type.src_type, type.name, type.dst_type) : path,
                       options, type.unread, true);
  return source;
}

struct Format {
  bool (*is)(const FoundDataset& found);
  bool has_node_data;
  std::unique_ptr<GraphSource> (*open)(const Communicator&, const std::string& path, const SourceOptions&);
};
/// The first format that is recognized counts. The last one is any text: an edge list.
const Format formats[] = {
    {[](const FoundDataset& found) { return found.kind != DatasetKind::unknown; }, true, open_dataset},
    {[](const FoundDataset& found) { return is_parquet(found.path); }, false, open_edge_lists},
    {[](const FoundDataset& found) { return is_npz(found.path); }, false, open_npz_source},
    {[](const FoundDataset& found) { return is_folder(found.path) || is_zip(found.path); }, true, open_ogb},
    {[](const FoundDataset& found) { return is_matrix_market(found.path); }, false, open_matrix_market},
    {[](const FoundDataset&) { return true; }, false, open_edge_lists},
};

/// Other formats say themselves what their columns and nodes are. Local.
void refuse_edge_list_options(const std::string& path, const SourceOptions& options) {
  const auto refuse = [&](const char* option, bool is_given) {
    require<InputError>(!is_given, path, ": the file is no edge list, expected no ", option);
  };
  refuse("--columns", !options.columns.empty());
  refuse("--header", options.header.has_value());
  refuse("--node-keys", !options.node_keys.empty());
  refuse("--separator", options.separator.has_value());
  refuse("--ignore-columns (train --ignore-edge-weights leaves weights alone)", options.ignore_data);
  refuse("--node-ids", options.node_ids != NodeIds::automatic);
}

}  // namespace

std::unique_ptr<GraphSource> open_source(const Communicator& comm, const std::string& path,
                                         const SourceOptions& options) {
  return open_source(comm, FoundDataset{find_dataset(path).kind, path}, options);
}

std::unique_ptr<GraphSource> open_source(const Communicator& comm, const FoundDataset& found,
                                         const SourceOptions& options) {
  const std::string& path = found.path;
  if (!options.relations.empty()) {
    require<InputError>(path.empty(), path, ": is given beside --edges, expected one of them");
    require<InputError>(options.node_table.empty() && options.node_features.empty(),
                        "--node-table and --node-features are for one edge list, expected none with --edges");
    return open_edge_lists(comm, path, options);
  }
  std::ptrdiff_t format = 0;
  comm.agree([&] {
    if (comm.rank() != 0) return;
    require_readable(found);
    if (!is_folder(path)) refuse_binary_formats(path);
    format = std::ranges::find_if(formats, [&](const Format& each) { return each.is(found); }) - formats;
  });
  comm.broadcast(std::span(&format, 1), 0);
  require<InputError>(!formats[format].has_node_data || options.node_data.empty(), path,
                      ": the directory has node data of its own, expected no other files of them");
  require<InputError>(
      !formats[format].has_node_data || (options.node_table.empty() && options.node_features.empty()), path,
      ": has node data of its own, expected no --node-table and no --node-features");
  if (formats[format].open != open_edge_lists) refuse_edge_list_options(path, options);
  std::unique_ptr<GraphSource> source = formats[format].open(comm, path, options);
  if (auto* file = dynamic_cast<FileSource*>(source.get())) {
    add_node_tables(*file, options);
    file->note_directions();
  }
  return source;
}

}  // namespace sar::formats
