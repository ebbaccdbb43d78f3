#include "open_source.hpp"

#include "edge_list_source.hpp"
#include "formats/ogb/ogb_source.hpp"
#include "inflate.hpp"
#include "matrix_market_source.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/graph/data/sources/dataset_source.hpp>
#include <sar/graph/data/sources/dgl_partition_json.hpp>
#include <sar/graph/data/sources/find_dataset.hpp>

#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>

namespace sar::formats {
namespace {

/// The one file in a directory that is called .json; empty for none or several.
std::string only_json(const std::string& directory) {
  std::string only;
  std::error_code unreachable;
  for (const std::string& name : names_in(directory, unreachable)) {
    if (!name.ends_with(".json")) continue;
    if (!only.empty()) return "";
    only = directory + "/" + name;
  }
  return only;
}

/// The banner is "%%MatrixMarket", in capitals or not.
bool is_matrix_market(const std::string& path) {
  std::string banner = read_beginning(path, 14);
  for (char& c : banner) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return banner == "%%matrixmarket";
}

enum class Kind { dataset, ogb, ogb_hetero, matrix_market, edge_list };

/// Local.
Kind kind_of(const std::string& path) {
  std::error_code unreachable;
  const auto exists = [&](const char* part) { return std::filesystem::exists(path + part, unreachable); };
  require<InputError>(exists(""), path, ": there is no such file or directory");
  require<InputError>(!find_dataset(path).is_partitioned(), path,
                      ": the graph is partitioned already, expected one that is not");
  const bool is_directory = std::filesystem::is_directory(path, unreachable);
  if (!is_directory && path.ends_with(".json"))
    static_cast<void>(read_dgl_partition(path));  // says what is wrong
  if (!is_directory)
    return path.ends_with(".mtx") || path.ends_with(".mtx.gz") || is_matrix_market(path) ? Kind::matrix_market
                                                                                         : Kind::edge_list;
  if (exists("/edge_index.npy") || exists("/hetero.json")) return Kind::dataset;
  if (const std::string json = exists("/raw") ? "" : only_json(path); !json.empty())
    static_cast<void>(read_dgl_partition(json));
  require<InputError>(
      exists("/raw"), path,
      ": the directory has no edge_index.npy, no hetero.json, no raw/ and no JSON file of a partition, "
      "expected a dataset directory, an OGB folder, or to train from, a partition");
  return is_ogb_hetero(path) ? Kind::ogb_hetero : Kind::ogb;
}

/// Other formats say themselves what their columns and nodes are. Local.
void refuse_edge_list_options(const std::string& path, const SourceOptions& options) {
  const auto refuse = [&](const char* option, bool is_given) {
    require<InputError>(!is_given, path, ": ", option,
                        " is for edge lists, and the file is none, expected no ", option);
  };
  refuse("--columns", !options.columns.empty());
  refuse("--header", options.header.has_value());
  refuse("--node-keys", !options.node_keys.empty());
  refuse("--node-ids from-1", options.node_ids == NodeIds::from_one);
}

}  // namespace

std::unique_ptr<GraphSource> open_source(const Communicator& comm, const std::string& path,
                                         const SourceOptions& options) {
  if (!options.relations.empty()) {
    require<InputError>(path.empty(), path, ": is given beside --edges, expected one of them");
    return std::make_unique<EdgeListSource>(comm, path, options);
  }
  Kind kind{};
  comm.agree([&] {
    if (comm.rank() == 0) kind = kind_of(path);
  });
  comm.broadcast(std::span(&kind, 1), 0);
  const bool has_data = kind != Kind::matrix_market && kind != Kind::edge_list;
  require<InputError>(!has_data || options.node_data.empty(), path,
                      ": the directory has node data of its own, expected no other files of them");
  if (kind != Kind::edge_list) refuse_edge_list_options(path, options);
  switch (kind) {
    case Kind::dataset:
      return std::make_unique<DatasetSource>(comm, path, options.fields);
    case Kind::ogb:
    case Kind::ogb_hetero:
      return std::make_unique<OgbSource>(comm, path, options, kind == Kind::ogb_hetero);
    case Kind::matrix_market:
      return std::make_unique<MatrixMarketSource>(comm, path, options);
    case Kind::edge_list:
      return std::make_unique<EdgeListSource>(comm, path, options);
  }
  throw InputError(path + ": cannot be opened");
}

}  // namespace sar::formats
