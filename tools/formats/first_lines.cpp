// SPDX-License-Identifier: MIT
#include "first_lines.hpp"

#include "shared_texts.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <utility>

namespace sar::formats {
namespace {

constexpr std::size_t most_lines = 50;

std::string_view trimmed_end(std::string_view line) {
  return line.substr(0, line.ends_with('\r') ? line.size() - 1 : line.size());
}
/// Whether a field in quotes does not end, whatever the separator.
bool has_open_quote(std::string_view line) {
  return std::ranges::any_of(std::string_view(",;\t"), [&](char separator) {
    Fields fields(line, separator);
    while (fields.next()) {
    }
    return fields.has_open_quote();
  });
}

/// Whether lines end with carriage returns alone.
bool has_lone_returns(std::string_view text) {
  const std::size_t first = text.find('\r');
  return first != text.npos && first + 1 < text.size() && text.find('\n') > first + 1;
}

/// The bytes of the first lines; nothing if a text that goes on may have more of them.
std::optional<std::size_t> bytes_of_first_lines(std::string_view beginning, bool whole) {
  const FirstLines first = first_lines(beginning);
  if (first.lines.size() == most_lines) return static_cast<std::size_t>(first.lines.back().end);
  if (whole) return beginning.size();
  const std::size_t last_end = beginning.rfind('\n');  // the line behind it may go on
  const auto is_complete = [&](const FirstLines::Line& line) {
    return last_end != beginning.npos && line.end <= static_cast<Index>(last_end) + 1;
  };
  if (std::ranges::count_if(first.lines, is_complete) < 2) return std::nullopt;
  return last_end + 1;
}

}  // namespace

FirstLines first_lines(std::string_view text, bool is_parquet) {
  FirstLines first;
  first.text = text;
  first.is_parquet = is_parquet;
  Lines lines(text);
  if (const std::string_view line = text.substr(0, text.find('\n'));
      lower_case(line.substr(0, 4)) == "sep=" && trimmed_end(line).size() == 5 && lines.next())
    first.separator = line[4];
  while (first.lines.size() < most_lines && lines.next()) {
    const FirstLines::Line line{lines.line(), lines.number(),
                                static_cast<Index>(text.size() - lines.rest().size())};
    if (!is_comment(line.text))
      first.lines.push_back(line);
    else if (!trimmed(line.text).empty())
      first.comments.push_back(line);
    if (first.lines.empty()) first.comments_before_data = std::ssize(first.comments);
  }
  return first;
}

TextPosition FirstLines::begin(bool behind_first) const {
  if (lines.empty()) return {};
  const Line& line = lines.front();
  if (behind_first) return {line.end, line.number + 1};
  return {line.text.data() - text.data(), line.number};
}

void require_no_rows_in_comments(const FirstLines& first, char separator, Index num_fields) {
  for (Index i = 0; i < first.comments_before_data; ++i) {
    const FirstLines::Line& comment = first.comments[i];
    const std::vector<std::string_view> fields = fields_of(comment.text, separator);
    if (std::ssize(fields) != num_fields) continue;
    const auto is_in_rows = [&](std::string_view field) {
      return !field.empty() && !to_number(field) &&
             std::ranges::any_of(first.lines, [&](const FirstLines::Line& line) {
               return std::ranges::count(fields_of(line.text, separator), field) > 0;
             });
    };
    bool is_row = to_number(fields[0].substr(1)).has_value();
    for (const std::string_view& field : fields)
      is_row = is_row || (&field != &fields[0] && field.starts_with(fields[0][0])) || is_in_rows(field);
    if (is_row) require_no_row(comment.text, comment.number, separator, num_fields, true);
  }
}

char separator_of(const FirstLines& first) {
  if (first.is_parquet) return ',';
  return first.separator ? *first.separator : guess_separator(first.lines);
}

std::string read_first_lines(const Communicator& comm, const std::string& path, const std::string& expected) {
  constexpr Index most = Index{1} << 26;
  return shared_text(comm, [&] {
    for (Index bytes = Index{1} << 16;; bytes *= 4) {
      std::string text = read_beginning(path, bytes);
      require<InputError>(text.find('\0') == std::string::npos, path,
                          ": the file is binary (it has bytes that are 0), expected ", expected);
      require<InputError>(!has_lone_returns(text), path,
                          ": lines end with carriage returns alone, expected line feeds (tr '\\r' '\\n')");
      const auto enough = bytes_of_first_lines(text, static_cast<Index>(text.size()) < bytes);
      if (enough) {
        text.resize(*enough);
        for (const FirstLines::Line& line : first_lines(text).lines)
          require<InputError>(!has_open_quote(line.text), path, ": line ", line.number + 1, ": ", open_quote);
        return text;
      }
      require<InputError>(bytes < most, path, ": the first ", bytes,
                          " bytes are comments or one line, expected ", expected);
    }
  });
}

std::vector<std::string_view> fields_of(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  for (Fields cut(line, separator); cut.next();) fields.push_back(cut.field());
  return fields;
}

char guess_separator(const std::vector<FirstLines::Line>& lines) {
  const auto separates = [&](char candidate) {
    return std::ranges::all_of(lines, [&](const FirstLines::Line& line) {
      Fields fields(trimmed(line.text), candidate);
      return fields.next() && fields.next();
    });
  };
  if (separates('\t')) return '\t';
  const bool comma = separates(','), semicolon = separates(';');
  if (comma && semicolon)
    throw LineError(lines.front().number, "there are commas and semicolons in ",
                    in_quotes(lines.front().text),
                    " and all other first lines, expected --separator comma or semicolon");
  return comma ? ',' : semicolon ? ';' : blanks;
}

std::string name_of_separator(char separator) {
  for (const auto& [known, name] :
       {std::pair{'\t', "tab"}, {',', "comma"}, {';', "semicolon"}, {blanks, "blanks"}})
    if (separator == known) return name;
  return in_quotes({&separator, 1});
}

}  // namespace sar::formats
