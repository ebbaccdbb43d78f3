// SPDX-License-Identifier: MIT
#include "ogb_text.hpp"

#include "formats/csv_table.hpp"
#include "formats/packed/sliced_rows.hpp"
#include "formats/packed/zip_file.hpp"
#include "formats/text.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <memory>
#include <utility>

namespace sar::formats {

namespace fs = std::filesystem;

std::vector<std::string> shared_list(const Communicator& comm, FunctionRef<std::vector<std::string>()> find) {
  std::string joined;
  comm.agree([&] {
    if (comm.rank() != 0) return;
    for (const std::string& item : find()) joined += item + '\n';
  });
  joined = comm.broadcast(joined, 0);
  std::vector<std::string> items;
  for (Lines lines(joined); lines.next();) items.emplace_back(lines.line());
  return items;
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

std::string OgbText::find_file(const std::string& name, bool required) const {
  const std::string path = folder_ + "/" + name + ".csv";
  const auto found = shared_list(comm_, [&] {
    for (const std::string& candidate : {path + ".gz", path})
      if (is_there_or_packed(candidate)) return std::vector<std::string>{candidate};
    require<InputError>(!required, path, ".gz: there is no such file, expected an OGB folder");
    return std::vector<std::string>();
  });
  return found.empty() ? "" : found[0];
}

std::vector<std::string> OgbText::other_files(const std::string& beginning) const {
  return shared_list(comm_, [&] {
    std::vector<std::string> found;
    for (const std::string& file : names_in_folder(folder_))
      if (file.starts_with(beginning) && (file.ends_with(".csv.gz") || file.ends_with(".csv")))
        found.push_back(folder_ + "/" + file);
    return found;
  });
}

std::vector<std::string> OgbText::read_text(const std::string& path) const {
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

Index OgbText::read_count(const std::string& name) const {
  const std::string path = find_file(name, true);
  std::vector<std::int64_t> values;
  Index mine = -1;
  const auto require_one = [&](bool condition, Index graphs, const char* at_least) {
    require<InputError>(condition, path, ": there are ", at_least, graphs,
                        " graphs, expected one (a dataset of node properties), or --task graph");
  };
  const TextCounts counts = read_lines(
      comm_, path, {}, block_bytes_,
      [&](std::string_view text) {
        const TableFormat format{.smallest = 0, .largest = Index{1} << 62};
        const TextCounts found = parse_table(text, format, values);
        if (!values.empty()) mine = values[0];
        return found;
      },
      [&](const BlockPlace& at) { require_one(at.rows_so_far <= 1, at.rows_so_far, "at least "); });
  require_one(counts.rows == 1, counts.rows, "");
  return comm_.all_reduce(mine, ReduceOp::max);
}

void OgbText::read_edges(const std::string& path, Index num_edges, Index num_sources, Index num_destinations,
                         EdgeChunks& chunks) const {
  std::vector<std::int64_t> values;
  const TableFormat format{
      .columns = 2, .smallest = 0, .largest = std::max(num_sources, num_destinations) - 1};
  const auto require_edges = [&](bool condition, Index edges, const char* at_least) {
    require<InputError>(condition, path, ": there are ", at_least, edges, " edges, expected ", num_edges,
                        " by num-edge-list.csv.gz");
  };
  const TextCounts counts = read_lines(
      comm_, path, {}, block_bytes_, [&](std::string_view text) { return parse_table(text, format, values); },
      [&](const BlockPlace& at) {
        require_edges(at.rows_so_far <= num_edges, at.rows_so_far, "at least ");
        comm_.agree([&] {
          std::vector<Index> src, dst;
          for (std::size_t i = 0; i < values.size(); i += 2) {
            require<InputError>(values[i] < num_sources && values[i + 1] < num_destinations, path, ": edge ",
                                at.first_row + static_cast<Index>(i / 2), " is (", values[i], ", ",
                                values[i + 1], "), expected nodes below ", num_sources, " and ",
                                num_destinations);
            src.push_back(values[i]);
            dst.push_back(values[i + 1]);
          }
          chunks.add(at.first_row, src, dst);
        });
      });
  require_edges(counts.rows == num_edges, counts.rows, "");
}

/// A table with one row for each node or edge, as slices.
template <class T>
DataArray OgbText::read_table(const std::string& path, Index columns, bool may_miss,
                              const PartitionBook& slices, const char* of) const {
  const TableFormat format{.columns = columns, .may_miss = may_miss};
  DataArray mine;
  const Index expected = slices.num_nodes();
  comm_.agree([&] {
    require<InputError>(expected <= TextFile(path).max_text_bytes(), path, ": the file is too small for ",
                        expected, " lines, expected one for each ", of);
    std::vector<Index> row_shape;
    if (columns > 1 || std::floating_point<T>) row_shape.push_back(columns);
    const NpyType type = std::same_as<T, std::int64_t> ? NpyType::int64
                         : std::same_as<T, float>      ? NpyType::float32
                                                       : NpyType::float64;
    mine = DataArray(type, row_shape, slices.num_nodes(comm_.rank()));
  });
  std::vector<T> values;
  const auto row_bytes = columns * static_cast<Index>(sizeof(T));
  const auto require_rows = [&](bool condition, Index rows, const char* at_least) {
    require<InputError>(condition, path, ": there are ", at_least, rows, " lines of numbers, expected ",
                        expected, ", one for each ", of);
  };
  const TextCounts counts = read_lines(
      comm_, path, {}, block_bytes_, [&](std::string_view text) { return parse_table(text, format, values); },
      [&](const BlockPlace& at) {
        require_rows(at.rows_so_far <= expected, at.rows_so_far, "at least ");
        send_rows(comm_, slices, at.first_row, std::as_bytes(std::span<const T>(values)), row_bytes,
                  mine.bytes.data());
      });
  require_rows(counts.rows == expected, counts.rows, "");
  return mine;
}

void OgbText::read_field(FieldTable& to, const std::string& field, const std::string& path,
                         const PartitionBook& slices, TableNumbers numbers, const char* of) const {
  Index columns = 0;
  comm_.agree([&] {
    if (comm_.rank() == 0) columns = count_columns(read_beginning(path, Index{1} << 22));
  });
  columns = std::max<Index>(1, comm_.all_reduce(columns));
  const bool may_miss = numbers == TableNumbers::labels;
  DataArray mine;
  if (numbers == TableNumbers::features) {
    mine = read_table<real>(path, columns, may_miss, slices, of);
  } else {
    try {
      mine = read_table<std::int64_t>(path, columns, may_miss, slices, of);
    } catch (const NotAnInteger&) {  // on all ranks
      mine = read_table<double>(path, columns, may_miss, slices, of);
    }
  }
  DataField known{field, mine.type, mine.row_shape};
  to.add(std::move(known), std::make_unique<SlicedFieldData>(slices, std::move(mine)), path);
}

void OgbText::read_masks(FieldTable& to, const PartitionBook& slices) const {
  for (const auto& [file, mask] :
       {std::pair{"train", "train_mask"}, {"valid", "val_mask"}, {"test", "test_mask"}}) {
    const std::string path = concat(folder_, "/", file, ".csv");
    const auto found = shared_list(comm_, [&] {
      require<InputError>(
          is_there_or_packed(path + ".gz") || is_there_or_packed(path), path,
          ".gz: there is no such file, expected the numbers of nodes, or lists of pairs (train.npz)");
      return std::vector<std::string>{is_there_or_packed(path + ".gz") ? path + ".gz" : path};
    });
    DataArray mine;
    comm_.agree([&] {
      mine = DataArray(NpyType::boolean, {}, slices.num_nodes(comm_.rank()));
      std::fill(mine.bytes.begin(), mine.bytes.end(), std::byte{0});
    });
    std::vector<std::int64_t> nodes;
    const TableFormat format{.smallest = 0, .largest = slices.num_nodes() - 1};
    read_lines(
        comm_, found[0], {}, block_bytes_,
        [&](std::string_view text) { return parse_table(text, format, nodes); },
        [&](const BlockPlace& at) {
          require<InputError>(at.rows_so_far <= slices.num_nodes(), found[0], ": there are at least ",
                              at.rows_so_far, " nodes, expected each of the ", slices.num_nodes(),
                              " once at most");
          std::sort(nodes.begin(), nodes.end());
          std::vector<Index> counts(static_cast<std::size_t>(comm_.size()), 0);
          for (const Index node : nodes) ++counts[slices.owner(node)];
          const Index begin = slices.begin(comm_.rank());
          for (const Index node : comm_.all_to_all_v(std::span<const Index>(nodes), counts).values)
            mine.bytes[node - begin] = std::byte{1};
        });
    to.add({mask, NpyType::boolean, {}}, std::make_unique<SlicedFieldData>(slices, std::move(mine)),
           found[0]);
  }
}

}  // namespace sar::formats
