// SPDX-License-Identifier: MIT
#include "pair_rows.hpp"

#include "formats/first_lines.hpp"
#include "formats/line_blocks.hpp"
#include "formats/node_keys.hpp"
#include "formats/text.hpp"

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/npy.hpp>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

namespace sar::formats {
namespace {

/// Numbers the names of the nodes by their lines. Collective.
std::unique_ptr<NodeKeys> read_names(const Communicator& comm, const std::string& path, Index block_bytes) {
  auto names = std::make_unique<NodeKeys>(comm);
  std::vector<std::string_view> words;
  const auto parse = [&](std::string_view text) {
    words.clear();
    Lines lines(text);
    while (lines.next()) words.push_back(lines.line());
    return TextCounts{lines.count(), std::ssize(words)};
  };
  const TextCounts counts = read_lines(comm, path, {}, block_bytes, parse, [&](const BlockPlace& place) {
    (void)names->handles(words, place.first_row);
  });
  names->number(counts.rows);
  return names;
}

/// A number from 0 in a field of a line.
Index number_in(std::string_view field, Index line) {
  const auto number = to_whole_number(unquoted(field));
  if (!number || *number < 0)
    throw LineError(line, "there is ", in_quotes(field), ", expected a number from 0");
  return *number;
}

/// Reads text. Collective.
PairRows read_text_pairs(const Communicator& comm, const std::string& path, const PairFile& file) {
  const Index columns = file.columns;
  TextPosition begin;
  const char separator = guess_from_first_lines(comm, path, "a text with a pair of nodes in each line",
                                                [&](const FirstLines& first) {
                                                  begin = first.begin(false);
                                                  const char found = separator_of(first);
                                                  require_no_rows_in_comments(first, found, columns);
                                                  return found;
                                                });
  const auto names = file.names.empty() ? nullptr : read_names(comm, file.names, file.block_bytes);
  PairRows read;
  std::vector<Index> numbers;
  std::vector<std::string_view> words;
  KeptTexts kept;
  const auto parse = [&](std::string_view text) {
    numbers.clear();
    words.clear();
    kept.clear();
    const auto skip = [&](std::string_view comment, Index number) {
      require_no_row(comment, number, separator, columns, names != nullptr);
    };
    const auto take_row = [&](std::string_view line, Index number) {
      Fields fields(line, separator);
      Index column = 0;
      for (; fields.next(); ++column) {
        if (column < 2 && names != nullptr)
          words.push_back(unquoted_text(fields.field(), kept));
        else
          numbers.push_back(number_in(fields.field(), number));
      }
      if (column != columns)
        throw LineError(number, "there are ", column, " fields, expected ", columns,
                        columns == 2 ? ": two nodes" : ": two nodes and an edge type");
    };
    return for_each_row(text, take_row, skip);
  };
  read_lines(comm, path, begin, file.block_bytes, parse, [&](const BlockPlace& place) {
    const Index first = place.first_row;
    std::vector<Index> found;
    if (names != nullptr) found = names->find(words);
    comm.agree([&] {
      const auto unknown = std::ranges::find(found, Index{-1});
      require<InputError>(unknown == found.end(), path, ": row ", first + (unknown - found.begin()) / 2,
                          unknown == found.end()
                              ? ""
                              : concat(": there is no node ",
                                       in_quotes(words[static_cast<std::size_t>(unknown - found.begin())])),
                          ", expected names as in ", file.names);
      const Index rows = names != nullptr ? std::ssize(words) / 2 : std::ssize(numbers) / columns;
      auto next = numbers.begin();
      for (Index i = 0; i < rows; ++i) {
        read.rows.push_back(first + i);
        for (Index c = 0; c < columns; ++c)
          read.numbers.push_back(c < 2 && names != nullptr ? found[static_cast<std::size_t>(2 * i + c)]
                                                           : *next++);
      }
    });
  });
  return read;
}

/// Reads an array, each rank an equal share of its rows. Collective.
PairRows read_array_pairs(const Communicator& comm, const std::string& path, const PairFile& file) {
  const Index columns = file.columns;
  return comm.agree([&] {
    const NpyFile array(path);
    require<InputError>(array.shape().size() == 2 && array.shape()[1] == columns, path, ": shape is ",
                        shape_to_string(array.shape()), ", expected [pairs, ", columns, "]",
                        columns == 2 ? " of two nodes" : " of two nodes and an edge type");
    const PartitionBook slices = PartitionBook::even(array.num_rows(), comm.size());
    PairRows read;
    read.rows.resize(static_cast<std::size_t>(slices.num_nodes(comm.rank())));
    std::iota(read.rows.begin(), read.rows.end(), slices.begin(comm.rank()));
    read.numbers.resize(read.rows.size() * static_cast<std::size_t>(columns));
    array.read_rows<std::int64_t>(read.rows, {read.numbers.data(), read.numbers.size()});
    return read;
  });
}

}  // namespace

bool is_array_file(const std::string& path) {
  return path.ends_with(".npy");
}

PairRows read_pair_rows(const Communicator& comm, const std::string& path, const PairFile& file) {
  return is_array_file(path) ? read_array_pairs(comm, path, file) : read_text_pairs(comm, path, file);
}

}  // namespace sar::formats
