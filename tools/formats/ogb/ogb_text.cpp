// SPDX-License-Identifier: MIT
#include "ogb_text.hpp"

#include "formats/csv_table.hpp"
#include "formats/packed/zip_file.hpp"
#include "formats/text.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace sar::formats {

namespace fs = std::filesystem;

std::string if_there(const std::string& path) {
  return is_there_or_packed(path) ? path : "";
}

std::string csv_file(const std::string& path) {
  const std::string packed = if_there(path + ".csv.gz");
  return packed.empty() ? if_there(path + ".csv") : packed;
}

std::string without_extension(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (const char* extension : {".gz", ".csv"})
    if (name.ends_with(extension)) name.erase(name.rfind('.'));
  return name;
}

std::string find_split(const Communicator& comm, const std::string& directory, const std::string& scheme) {
  const auto schemes = shared_list(comm, [&] {
    std::vector<std::string> found;
    for (const std::string& name : names_in_folder(directory))
      if (is_folder(directory + "/" + name)) found.push_back(name);
    return found;
  });
  if (schemes.empty() && scheme.empty()) return "";
  const std::string names = joined(schemes);
  require<InputError>(!scheme.empty() || schemes.size() == 1, directory, ": there are several splits (",
                      names, "), expected the name of one of them");
  const std::string chosen = scheme.empty() ? schemes[0] : scheme;
  require<InputError>(std::find(schemes.begin(), schemes.end(), chosen) != schemes.end(), directory,
                      ": there is no split ", chosen, ", expected ", names.empty() ? "none" : names);
  return directory + "/" + chosen;
}

std::string TableFolder::find_file(const std::string& name, bool required) const {
  return shared_text(comm_, [&] {
    for (const std::string& ending : endings_)
      if (const std::string path = beginning_ + name + ending; is_there_or_packed(path)) return path;
    require<InputError>(!required, beginning_, name, endings_[0], ": there is no such file, expected ",
                        expected_);
    return std::string();
  });
}

std::vector<std::string> TableFolder::other_files(const std::string& beginning) const {
  return shared_list(comm_, [&] {
    std::vector<std::string> found;
    for (const std::string& file : names_in_folder(beginning_))
      if (file.starts_with(beginning) && (file.ends_with(".csv.gz") || file.ends_with(".csv")))
        found.push_back(beginning_ + file);
    return found;
  });
}

std::vector<std::string> TableFolder::read_text(const std::string& path) const {
  constexpr Index most = Index{1} << 20;
  return shared_list(comm_, [&] {
    const std::string text = read_beginning(path, most);
    require<InputError>(static_cast<Index>(text.size()) < most, path, ": the file has ", most,
                        " bytes or more, expected a short list");
    std::vector<std::string> found;
    for (Lines lines(text); lines.next();)
      if (!trimmed(lines.line()).empty()) found.emplace_back(trimmed(lines.line()));
    return found;
  });
}

Index TableFolder::read_count(const std::string& name) const {
  const std::string path = find_file(name, true);
  const TableFormat format{
      .smallest = 0,
      .largest = Index{1} << 62,
      .rows = 1,
      .wrong_rows = " graphs, expected one (a dataset of node properties), or --task graph"};
  return read_list(comm_, path, format, block_bytes_)[0];
}

void TableFolder::read_edges(const std::string& path, Index num_edges, Index num_sources,
                             Index num_destinations, EdgeChunks& chunks) const {
  const TableFormat format{.columns = 2,
                           .smallest = 0,
                           .largest = std::max(num_sources, num_destinations) - 1,
                           .rows = num_edges,
                           .wrong_rows = concat(" edges, expected ", num_edges, " by num-edge-list.csv.gz")};
  read_table<std::int64_t>(comm_, path, format, block_bytes_, [&](auto& values, const BlockPlace& at) {
    comm_.agree([&] {
      std::vector<Index> src, dst;
      for (std::size_t i = 0; i < values.size(); i += 2) {
        require<InputError>(values[i] < num_sources && values[i + 1] < num_destinations, path, ": edge ",
                            at.first_row + static_cast<Index>(i / 2), " is (", values[i], ", ", values[i + 1],
                            "), expected nodes below ", num_sources, " and ", num_destinations);
        src.push_back(values[i]);
        dst.push_back(values[i + 1]);
      }
      chunks.add(at.first_row, src, dst);
    });
  });
}

DataArray TableFolder::read_rows(const std::string& path, const PartitionBook& slices, TableNumbers numbers,
                                 const char* of) const {
  const Index expected = slices.num_nodes();
  const TableFormat format{
      .columns = count_columns(comm_, path),
      .may_miss = numbers == TableNumbers::labels,
      .rows = expected,
      .wrong_rows = concat(" lines of numbers, expected ", expected, ", one for each ", of)};
  comm_.agree([&] {
    require<InputError>(expected <= TextFile(path).max_text_bytes(), path, ": the file is too small for ",
                        expected, " lines, expected one for each ", of);
  });
  if (numbers == TableNumbers::features)
    return read_table_rows<real>(comm_, path, format, block_bytes_, &slices);
  try {
    return read_table_rows<std::int64_t>(comm_, path, format, block_bytes_, &slices);
  } catch (const NotAnInteger&) {  // on all ranks
    return read_table_rows<double>(comm_, path, format, block_bytes_, &slices);
  }
}

void TableFolder::read_masks(FieldTable& to, const PartitionBook& slices) const {
  for (const auto& [file, mask] :
       {std::pair{"train", "train_mask"}, {"valid", "val_mask"}, {"test", "test_mask"}}) {
    const std::string path = find_file(file, false);
    require<InputError>(
        !path.empty(), beginning_, file,
        ".csv.gz: there is no such file, expected the numbers of nodes, or lists of pairs (train.npz)");
    DataArray mine;
    comm_.agree([&] {
      mine = DataArray(NpyType::boolean, {}, slices.num_nodes(comm_.rank()));
      std::fill(mine.bytes.begin(), mine.bytes.end(), std::byte{0});
    });
    const TableFormat format{.smallest = 0, .largest = slices.num_nodes() - 1};
    read_table<std::int64_t>(comm_, path, format, block_bytes_, [&](auto& nodes, const BlockPlace& at) {
      require<InputError>(at.rows_so_far <= slices.num_nodes(), path, ": there are at least ", at.rows_so_far,
                          " nodes, expected each of the ", slices.num_nodes(), " once at most");
      std::ranges::sort(nodes);
      std::vector<Index> counts(static_cast<std::size_t>(comm_.size()), 0);
      for (const Index node : nodes) ++counts[slices.owner(node)];
      const Index begin = slices.begin(comm_.rank());
      for (const Index node : comm_.all_to_all_v(std::span<const Index>(nodes), counts).values)
        mine.bytes[node - begin] = std::byte{1};
    });
    to.add(mask, slices, std::move(mine), path);
  }
}

}  // namespace sar::formats
