// SPDX-License-Identifier: MIT

// The text is read once, or twice where names are numbered: 8 bytes for each number of a row. A rank keeps
// the rows that it has read until the route has sent them to the owners of the nodes.

#include "node_table.hpp"

#include "formats/column_roles.hpp"
#include "formats/first_lines.hpp"
#include "formats/line_blocks.hpp"
#include "formats/node_keys.hpp"
#include "formats/text.hpp"
#include "node_join.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace sar::formats {
namespace {

constexpr std::size_t most_labels = 65536, most_categories = 4096;

/// Calls take(fields, line) for each line of data of a block. Local; throws LineError.
template <class Take>
TextCounts for_each_row_of(std::string_view text, const TextTable& format, const Take& take) {
  std::vector<std::string_view> fields;
  const auto skip = [&](std::string_view comment, Index number) {
    require_no_row(comment, number, format.separator, std::ssize(format.columns), true);
  };
  const auto take_row = [&](std::string_view line, Index number) {
    fields.clear();
    Fields cut(line, format.separator);
    while (cut.next()) fields.push_back(cut.field());
    if (cut.has_open_quote()) throw LineError(number, open_quote);
    if (fields.size() != format.columns.size())
      throw LineError(number, "there are ", fields.size(), " fields in ", formats::in_quotes(line),
                      ", expected ", format.columns.size(), " as in the header");
    take(fields, number);
  };
  return for_each_row(text, take_row, skip);
}

/// The values of a column, as far as they are names.
struct ColumnValues {
  WordSet words;
  bool are_numbers = true;
  bool has_missing = false;  ///< what Column::missing says

  void add(const Column& column, std::string_view field, std::size_t most) {
    has_missing = has_missing || field == column.missing;
    if (is_unlabelled(column, field)) return;
    are_numbers = are_numbers && number_or_flag(field).has_value();
    if (words.size() <= most && !words.contains(field)) words.emplace(field);
  }
  /// Joins the values of all ranks. Collective.
  void add_ranks(const Communicator& comm) {
    words = gather_words(comm, words);
    are_numbers = comm.all_reduce(are_numbers ? 1 : 0, ReduceOp::min) == 1;
    has_missing = comm.all_reduce(has_missing ? 1 : 0, ReduceOp::max) == 1;
  }
};

/// Refuses a word among numbers that would make classes of them: beside a number that is not whole, or alone
/// beside several.
void require_no_word(const std::string& path, const Column& column, const WordSet& values) {
  const auto is_word = [](const std::string& value) { return !number_or_flag(value); };
  const auto word = std::ranges::find_if(values, is_word);
  const auto words = std::ranges::count_if(values, is_word), numbers = std::ssize(values) - words;
  const bool has_values = std::ranges::any_of(values, [&](const std::string& value) {
    return !is_word(value) && !to_whole_number(value) && to_number(value);
  });
  require<InputError>(word == values.end() || !(has_values || (words == 1 && numbers > 1)), path, ": column ",
                      formats::in_quotes(column.name), " has numbers and ",
                      formats::in_quotes(word == values.end() ? "" : *word),
                      ", expected numbers alone, names alone, or --missing-label ",
                      word == values.end() ? "" : *word);
}

/// Finds the categories of labels and one-hot columns.
void find_categories(const Communicator& comm, const SourceOptions& options, TextTable& format) {
  std::map<std::size_t, ColumnValues> values;
  for (std::size_t c = 0; c < format.columns.size(); ++c)
    if (format.columns[c].role == ColumnRole::labels || format.columns[c].role == ColumnRole::one_hot)
      values[c];
  if (values.empty()) return;
  const auto parse = [&](std::string_view text) {
    KeptTexts kept;
    return for_each_row_of(text, format, [&](const std::vector<std::string_view>& fields, Index) {
      for (auto& [c, of_column] : values)
        of_column.add(format.columns[c], unquoted_text(fields[c], kept), most_labels);
    });
  };
  read_lines(comm, options.node_table, format.begin, options.block_bytes, parse, [](const BlockPlace&) {});
  for (auto& [c, of_column] : values) {
    of_column.add_ranks(comm);
    Column& column = format.columns[c];
    const bool is_label = column.role == ColumnRole::labels;
    require<InputError>(of_column.has_missing || column.missing.empty(), options.node_table, ": column ",
                        formats::in_quotes(column.name), " has no ", formats::in_quotes(column.missing),
                        ", expected --missing-label with a word that it has");
    if (is_label && of_column.are_numbers) continue;
    const auto with_commas = std::ranges::find_if(of_column.words, has_number_commas);
    if (is_label && with_commas != of_column.words.end() &&
        std::ranges::all_of(of_column.words, [](const std::string& word) {
          return number_or_flag(word) || has_number_commas(word);
        }))
      throw InputError(concat(options.node_table, ": column ", formats::in_quotes(column.name), " is ",
                              formats::in_quotes(*with_commas), ", expected ", no_number_commas));
    if (is_label) require_no_word(options.node_table, column, of_column.words);
    const std::size_t most = is_label ? most_labels : most_categories;
    require<InputError>(of_column.words.size() <= most, options.node_table, ": column ",
                        formats::in_quotes(column.name), " has more than ", most,
                        " different values, expected ", is_label ? "classes" : "categories");
    column.categories.assign(of_column.words.begin(), of_column.words.end());
  }
}

/// The numbers of all rows, which the join has sent to the slices.
DataArray read_rows_of(const FileSource& source, const SourceOptions& options, const TextTable& format,
                       NodeJoin& join) {
  const Communicator& comm = source.comm();
  std::vector<double> numbers;
  std::vector<std::string_view> keys;
  KeptTexts kept;  // of keys
  std::vector<Index> lines;
  const std::size_t key = format.place_of(ColumnRole::key);
  const auto parse = [&](std::string_view text) {
    keys.clear();
    kept.clear();
    lines.clear();
    return for_each_row_of(text, format, [&](const std::vector<std::string_view>& fields, Index line) {
      if (unquoted(fields[key]).empty()) throw LineError(line, "the key is empty, expected a node");
      keys.push_back(unquoted_text(fields[key], kept));
      lines.push_back(line);
      for (std::size_t c = 0; c < fields.size(); ++c)
        append_numbers(format.columns[c], fields[c], line, numbers);
    });
  };
  read_lines(comm, options.node_table, format.begin, options.block_bytes, parse, [&](const BlockPlace& at) {
    for (Index& line : lines) line += at.first_line + 1;
    join.add(keys, lines);
  });
  join.finish();
  DataArray rows;
  comm.agree([&] {
    rows = DataArray(NpyType::float64, {format.width()}, std::ssize(join.nodes()));
    std::memcpy(rows.bytes.data(), numbers.data(), numbers.size() * sizeof(double));
    numbers = {};
  });
  return join.to_slices(rows);
}

void add_table_fields(const TextTable& format, const DataArray& rows, const PartitionBook& slices,
                      const std::string& place, FieldTable& fields) {
  const auto add = [&](const std::string& name, DataArray data) {
    fields.add(name, slices, std::move(data), place);
  };
  const auto all_slots = field_slots(format.columns);
  for (const std::string name : {"features", "labels", "train_mask", "val_mask", "test_mask", "split"}) {
    const auto found = std::ranges::find(all_slots, name, [](const auto& of) { return of.first; });
    if (found == all_slots.end()) continue;
    if (name != "split") {
      add(name, take_columns(rows, found->second, name == "features"));
      continue;
    }
    double part = 0;
    for (const char* mask : {"train_mask", "val_mask", "test_mask"}) {
      require<InputError>(!fields.contains(mask), place, ": there are a column of the split and one of ",
                          mask, ", expected one of them");
      DataArray of_part = take_columns(rows, found->second, false);
      for (double& value : doubles_in(of_part)) value = value == part ? 1 : 0;
      add(mask, std::move(of_part));
      ++part;
    }
  }
}

}  // namespace

void add_node_table(FileSource& source, const SourceOptions& options) {
  const Communicator& comm = source.comm();
  const std::string& path = options.node_table;
  TextTable format =
      guess_from_first_lines(comm, path, "a table with a header and a row for each node",
                             [&](const FirstLines& first) { return node_table_of(first, options); });
  find_categories(comm, options, format);
  NodeJoin join(source, path);
  const DataArray rows = read_rows_of(source, options, format, join);
  FieldTable fields;
  comm.agree([&] { add_table_fields(format, rows, join.slices(), path, fields); });
  source.add_node_fields(join.slices().num_nodes(), std::move(fields),
                         concat(path, ": ", describe(format.columns, false)));
}

void add_node_tables(FileSource& source, const SourceOptions& options) {
  if (!options.node_table.empty()) add_node_table(source, options);
  if (!options.node_features.empty()) add_json_features(source, options);
}

}  // namespace sar::formats
