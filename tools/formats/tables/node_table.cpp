// SPDX-License-Identifier: MIT

// The text is read once, or twice where names are numbered: 8 bytes for each number of a row. A rank keeps
// the rows that it has read until the route has sent them to the owners of the nodes.

#include "node_table.hpp"

#include "formats/first_lines.hpp"
#include "formats/key_table.hpp"
#include "formats/line_blocks.hpp"
#include "formats/table_columns.hpp"
#include "formats/text.hpp"
#include "node_join.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace sar::formats {
namespace {

constexpr std::size_t most_labels = 65536, most_categories = 4096;

/// Calls take(fields, line) for each line of data of a block. Local; throws LineError.
template <class Take>
TextCounts for_each_row_of(std::string_view text, const NodeTableFormat& format, const Take& take) {
  Lines lines(text);
  Index rows = 0;
  while (lines.next()) {
    if (is_comment(lines.line())) continue;
    std::vector<std::string_view> fields;
    Fields cut(lines.line(), format.separator);
    while (cut.next()) fields.push_back(cut.field());
    if (cut.has_open_quote()) throw LineError(lines.number(), open_quote);
    if (fields.size() != format.columns.size())
      throw LineError(lines.number(),
                      concat("there are ", fields.size(), " fields in ", formats::in_quotes(lines.line()),
                             ", expected ", format.columns.size(), " as in the header"));
    take(fields, lines.number());
    ++rows;
  }
  return {lines.count(), rows};
}

/// The values of a column, as far as they are names.
struct ColumnValues {
  std::set<std::string, std::less<>> words;
  bool are_numbers = true;

  void add(const TableColumn& column, std::string_view field, std::size_t most) {
    if (is_unlabelled(column, field)) return;
    are_numbers = are_numbers && number_or_flag(field).has_value();
    if (words.size() <= most && !words.contains(field)) words.emplace(field);
  }
  /// Joins the values of all ranks. Collective.
  void add_ranks(const Communicator& comm) {
    std::string list;
    for (const std::string& word : words) (list += word) += '\n';
    const std::vector<char> all = comm.all_gather(std::span<const char>(list.data(), list.size()));
    for (Lines lines(std::string_view(all.data(), all.size())); lines.next();) words.emplace(lines.line());
    are_numbers = comm.all_reduce(are_numbers ? 1 : 0, ReduceOp::min) == 1;
  }
};

/// Finds the categories of labels and one-hot columns.
void find_categories(const Communicator& comm, const SourceOptions& options, NodeTableFormat& format) {
  std::map<std::size_t, ColumnValues> values;
  for (std::size_t c = 0; c < format.columns.size(); ++c)
    if (format.columns[c].role == TableRole::labels || format.columns[c].role == TableRole::one_hot)
      values[c];
  if (values.empty()) return;
  const auto parse = [&](std::string_view text) {
    return for_each_row_of(text, format, [&](const std::vector<std::string_view>& fields, Index) {
      for (auto& [c, of_column] : values) of_column.add(format.columns[c], unquoted(fields[c]), most_labels);
    });
  };
  read_lines(comm, options.node_table, format.begin, options.block_bytes, parse, [](const BlockPlace&) {});
  for (auto& [c, of_column] : values) {
    of_column.add_ranks(comm);
    TableColumn& column = format.columns[c];
    const bool is_label = column.role == TableRole::labels;
    if (is_label && of_column.are_numbers) continue;
    const auto with_commas = std::ranges::find_if(of_column.words, has_number_commas);
    if (is_label && with_commas != of_column.words.end() &&
        std::ranges::all_of(of_column.words, [](const std::string& word) {
          return number_or_flag(word) || has_number_commas(word);
        }))
      throw InputError(concat(options.node_table, ": column ", formats::in_quotes(column.name), " is ",
                              formats::in_quotes(*with_commas), ", expected ", no_number_commas));
    const std::size_t most = is_label ? most_labels : most_categories;
    require<InputError>(of_column.words.size() <= most, options.node_table, ": column ",
                        formats::in_quotes(column.name), " has more than ", most,
                        " different values, expected ", is_label ? "classes" : "categories");
    column.categories.assign(of_column.words.begin(), of_column.words.end());
  }
}

/// The numbers of all rows, which the join has sent to the slices.
DataArray read_rows_of(const FileSource& source, const SourceOptions& options, const NodeTableFormat& format,
                       NodeJoin& join) {
  const Communicator& comm = source.comm();
  std::vector<double> numbers;
  std::vector<std::string_view> keys;
  std::vector<Index> lines;
  const std::size_t key = format.key();
  const auto parse = [&](std::string_view text) {
    keys.clear();
    lines.clear();
    return for_each_row_of(text, format, [&](const std::vector<std::string_view>& fields, Index line) {
      if (unquoted(fields[key]).empty()) throw LineError(line, "the key is empty, expected a node");
      keys.push_back(unquoted(fields[key]));
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

/// Columns of the rows as a field, converted by `to`.
template <class Convert>
void add_table_field(NodeTable& table, const std::string& name, const DataArray& rows,
                     const PartitionBook& slices, const std::vector<Index>& slots, bool is_list,
                     const std::string& place, const Convert& convert) {
  DataField field{name, NpyType::float64, {}};
  if (is_list) field.row_shape.push_back(std::ssize(slots));
  DataArray data(field.type, field.row_shape, rows.num_rows);
  constexpr Index bytes = sizeof(double);
  for (Index row = 0; row < rows.num_rows; ++row)
    for (std::size_t i = 0; i < slots.size(); ++i) {
      double value = 0;
      std::memcpy(&value, rows.row(row) + slots[i] * bytes, sizeof value);
      value = convert(value);
      std::memcpy(data.row(row) + static_cast<Index>(i) * bytes, &value, sizeof value);
    }
  table.fields.add(std::move(field), std::make_unique<SlicedFieldData>(slices, std::move(data)), place);
}

void add_table_fields(const NodeTableFormat& format, const DataArray& rows, const PartitionBook& slices,
                      const std::string& place, NodeTable& table) {
  std::map<TableRole, std::vector<Index>> slots;
  Index slot = 0;
  for (const TableColumn& column : format.columns)
    for (Index i = 0; i < column.width(); ++i)
      slots[column.role == TableRole::one_hot ? TableRole::features : column.role].push_back(slot++);
  const auto as_it_is = [](double value) { return value; };
  if (slots.contains(TableRole::features))
    add_table_field(table, "features", rows, slices, slots[TableRole::features], true, place, as_it_is);
  for (const auto& [role, name] : {std::pair{TableRole::labels, "labels"},
                                   {TableRole::train_mask, "train_mask"},
                                   {TableRole::val_mask, "val_mask"},
                                   {TableRole::test_mask, "test_mask"}})
    if (slots.contains(role)) add_table_field(table, name, rows, slices, slots[role], false, place, as_it_is);
  if (!slots.contains(TableRole::split)) return;
  double part = 0;
  for (const char* mask : {"train_mask", "val_mask", "test_mask"}) {
    require<InputError>(!table.fields.data.contains(mask), place,
                        ": there are a column of the split and one of ", mask, ", expected one of them");
    add_table_field(table, mask, rows, slices, slots[TableRole::split], false, place,
                    [&](double value) { return value == part ? 1.0 : 0.0; });
    ++part;
  }
}

}  // namespace

NodeTable read_node_table(const FileSource& source, const SourceOptions& options) {
  const Communicator& comm = source.comm();
  const std::string& path = options.node_table;
  const std::string beginning = read_first_lines(comm, path, "a table with a header and a row for each node");
  NodeTableFormat format;
  comm.agree([&] {
    try {
      format = table_format(beginning, options);
    } catch (const LineError& error) {
      throw InputError(concat(path, ": line ", error.line() + 1, ": ", error.what()));
    }
  });
  find_categories(comm, options, format);
  NodeJoin join(source, path);
  const DataArray rows = read_rows_of(source, options, format, join);
  NodeTable table{.num_nodes = join.slices().num_nodes(), .note = concat(path, ": ", format.describe())};
  comm.agree([&] { add_table_fields(format, rows, join.slices(), path, table); });
  return table;
}

}  // namespace sar::formats
