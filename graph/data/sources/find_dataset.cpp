// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/json_value.hpp>
#include <sar/graph/data/sources/find_dataset.hpp>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

namespace fs = std::filesystem;

/// Which program's description of a partitioned graph a JSON file is. A damaged partition.json counts as
/// ours: loading it says what is wrong.
DatasetKind kind_of_json(const std::string& path) {
  std::string text;
  try {
    text = read_text(path, "a JSON file");
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
