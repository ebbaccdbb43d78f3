// SPDX-License-Identifier: MIT
#include "node_key_file.hpp"

#include "column_names.hpp"
#include "first_lines.hpp"
#include "formats/packed/parquet_table.hpp"
#include "line_blocks.hpp"
#include "table_columns.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>

#include <vector>

namespace sar::formats {
namespace {

constexpr const char* key_text = "a text with the id of a node in each line";

struct KeyFormat {
  bool is_table = false;  ///< else a line is an id
  char separator = blanks;
  Index column = 0;
  TextPosition begin;
};

/// Of a table, the first column that is called as a key.
KeyFormat guess_key_format(const std::string& path, std::string_view text, const SourceOptions& options) {
  if (path == options.node_table) {
    const NodeTableFormat table = table_format(text, options);
    return {true, table.separator, static_cast<Index>(table.key()), table.begin};
  }
  KeyFormat format;
  const FirstLines first = first_lines(text);
  if (first.lines.empty()) return format;
  format.separator = separator_of(first);
  format.begin = first.begin(false);
  for (const char* end : {".csv", ".tsv", ".csv.gz", ".tsv.gz"})
    format.is_table = format.is_table || path.ends_with(end);
  if (is_parquet(path)) format = {true, ',', 0, first.begin(true)};
  const auto fields = fields_of(first.lines.front().text, format.separator);
  for (std::size_t c = 0; c < fields.size(); ++c)
    if (is_key_name(unquoted(fields[c])))
      return {true, format.separator, static_cast<Index>(c), first.begin(true)};
  return format;
}

/// The id of a line; empty: there is none.
std::string_view id_of(std::string_view line, const KeyFormat& format) {
  if (!format.is_table) return unquoted(trimmed(line));
  Fields fields(line, format.separator);
  for (Index column = 0; fields.next(); ++column)
    if (column == format.column) return unquoted(fields.field());
  return {};
}

}  // namespace

Index read_node_keys(const Communicator& comm, const std::string& path, const SourceOptions& options,
                     FunctionRef<void(std::span<const std::string_view> ids, Index first)> take) {
  const std::string beginning = read_first_lines(comm, path, key_text);
  KeyFormat format;
  comm.agree([&] {
    try {
      format = guess_key_format(path, beginning, options);
    } catch (const LineError& error) {
      throw InputError(concat(path, ": line ", error.line() + 1, ": ", error.what()));
    }
  });
  std::vector<std::string_view> ids;
  const auto parse = [&](std::string_view text) {
    ids.clear();
    Lines lines(text);
    while (lines.next()) {
      if (is_comment(lines.line())) continue;
      const std::string_view id = id_of(lines.line(), format);
      if (id.empty())
        throw LineError(lines.number(), concat("there is no id in column ", format.column + 1, " of ",
                                               in_quotes(lines.line()), ", expected one"));
      ids.push_back(id);
    }
    return TextCounts{lines.count(), std::ssize(ids)};
  };
  return read_lines(comm, path, format.begin, options.block_bytes, parse,
                    [&](const BlockPlace& at) { take(ids, at.first_row); })
      .rows;
}

}  // namespace sar::formats
