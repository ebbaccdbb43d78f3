// SPDX-License-Identifier: MIT
#include "sample_tables.hpp"

#include "formats/packed/text_file.hpp"
#include "formats/packed/zip_file.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace sar::formats {
namespace {

constexpr std::string_view indicator_file = "_graph_indicator.txt";

/// The folders in a zip archive that have a file of one of the formats; the path itself if it is none.
std::vector<std::string> folders_in(const std::string& path) {
  if (is_folder(path)) return {path, path + "/raw"};
  std::error_code unreachable;
  if (!std::filesystem::is_regular_file(path, unreachable) || !begins_as_zip(read_beginning(path, 4)))
    return {path};
  const auto folders = folders_with(path, {"_graph_indicator.txt", "/raw/num-node-list"});
  return {folders.begin(), folders.end()};
}

struct TuFiles {
  std::string folder, name;
};

/// The folder with the files of a TU dataset, and its name.
std::optional<TuFiles> find_tu(const std::string& path) {
  for (const std::string& folder : folders_in(path)) {
    std::vector<std::string> names;
    for (const std::string& file : names_in_folder(folder))
      if (file.ends_with(indicator_file))
        names.push_back(file.substr(0, file.size() - indicator_file.size()));
    require<InputError>(names.size() <= 1, folder, ": there are several datasets (", joined(names),
                        "), expected one NAME", indicator_file);
    if (!names.empty()) return TuFiles{folder, names[0]};
  }
  return std::nullopt;
}

}  // namespace

bool is_tu_dataset(const std::string& path) {
  try {
    return find_tu(path).has_value();
  } catch (const InputError&) {
    return false;
  }
}

SampleDataset read_samples(const Communicator& comm, const std::string& path, const SourceOptions& options,
                           LabelType labels) {
  const std::vector<std::string> found = shared_list(comm, [&]() -> std::vector<std::string> {
    require<InputError>(is_there_or_packed(path), path, ": there is no such file or directory");
    if (const auto tu = find_tu(path)) return {"tu", tu->folder, tu->name};
    for (const std::string& folder : folders_in(path))
      if (!csv_file(folder + "/raw/num-node-list").empty()) return {"ogb", folder};
    throw InputError(concat(path,
                            ": there is no dataset of graph samples, expected a folder or zip archive "
                            "with NAME_A.txt and NAME_graph_indicator.txt (TU), or with "
                            "raw/num-node-list.csv.gz (OGB)"));
  });
  SampleDataset data = found[0] == "tu" ? read_tu_samples(comm, found[1], found[2], options, labels)
                                        : read_ogb_samples(comm, found[1], options);
  if (data.name.empty()) data.name = last_part_of(path);
  return data;
}

}  // namespace sar::formats
