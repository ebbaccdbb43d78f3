// SPDX-License-Identifier: MIT
#include "edge_list.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace sar::formats {
namespace {

using Line = FirstLines::Line;
using Row = std::vector<std::string_view>;

bool is_number(std::string_view field) {
  return to_number(field).has_value();
}

/// The fields of each line, with their quotes.
std::vector<Row> rows_of(const std::vector<Line>& lines, char separator) {
  std::vector<Row> rows;
  for (const Line& line : lines) rows.push_back(fields_of(line.text, separator));
  return rows;
}

/// Refuses commas that may be part of a text behind two fields, which blanks separate in all lines: of the
/// last field, or behind two numbers.
void require_no_blanks(const std::vector<Line>& lines) {
  const auto has_comma = [](std::string_view field) { return field.find(',') != field.npos; };
  const std::size_t length = fields_of(lines.front().text, blanks).size();
  const bool blanks_separate = std::ranges::all_of(lines, [&](const Line& line) {
    const Row fields = fields_of(line.text, blanks);
    const auto comma = std::ranges::find_if(fields, has_comma);
    if (fields.size() != length || comma == fields.end()) return false;
    const bool numbers = length > 2 && is_number(fields[0]) && is_number(fields[1]);
    return comma == fields.end() - 1 || (comma - fields.begin() >= 2 && (numbers || &line == &lines.front()));
  });
  if (blanks_separate && length > 2)  // of two, the first may be a name of two words
    throw LineError(lines.front().number, "there are commas and blanks in ", in_quotes(lines.front().text),
                    " and all other first lines, expected --separator comma or blank");
}

/// Decides whether the first line is a header.
class HeaderGuess {
 public:
  HeaderGuess(const Line& line, std::vector<Row> rows) : line_(line), rows_(std::move(rows)) {
    for (Row& row : rows_) std::ranges::transform(row, row.begin(), unquoted);
    first_ = std::move(rows_.front());
    rows_.erase(rows_.begin());
  }

  /// Throws LineError if it could be a header or an edge.
  [[nodiscard]] bool is_header() const {
    if (header_names(first_) == HeaderNames::certain) return true;
    if (rows_.empty() || first_.empty()) return false;
    if (first_[0].empty() && below(0, is_number)) return true;  // the row numbers of pandas have no name
    const auto has_numbers_in = [&](std::size_t c) {
      return c < first_.size() && is_number(first_[c]) && below(c, is_number);
    };
    const bool has_numbers = has_numbers_in(0) || has_numbers_in(1);
    for (std::size_t c = 0; c < first_.size(); ++c) {
      const bool numbers_below = below(c, is_number), is_text = !first_[c].empty() && !is_number(first_[c]);
      const bool parts_below =
          c >= 2 && below(c, [](std::string_view field) { return to_part(field).has_value(); });
      const bool is_other = is_text && (c < 2 || !to_part(first_[c])) && (numbers_below || parts_below);
      if (is_other && (has_numbers || nodes_recur())) cannot_tell();
      if (is_other || (first_[c].empty() && std::ranges::none_of(first_, is_number) && numbers_below))
        return true;
    }
    if (has_numbers || nodes_recur()) return false;
    if (header_names(first_) == HeaderNames::possible || only_first_lacks_digits()) cannot_tell();
    return false;
  }

  /// Whether a word of the first line is in one of the others; without others, true.
  [[nodiscard]] bool nodes_recur() const {
    return rows_.empty() || std::ranges::any_of(first_, [&](std::string_view word) {
             return !word.empty() && !is_number(word) && std::ranges::any_of(rows_, [&](const Row& row) {
               return std::ranges::find(row, word) != row.end();
             });
           });
  }

 private:
  [[noreturn]] void cannot_tell() const {
    throw LineError(line_.number, "cannot tell whether ", in_quotes(line_.text),
                    " is a header or an edge, expected --header yes or --header no");
  }
  /// Whether `is` holds in a column of the other lines; behind the nodes, fields may be empty.
  template <class Is>
  [[nodiscard]] bool below(std::size_t c, const Is& is) const {
    bool any = false;
    for (const Row& row : rows_) {
      if (c >= row.size()) return false;
      if (c >= 2 && row[c].empty()) continue;
      if (!is(row[c])) return false;
      any = true;
    }
    return any;
  }
  /// "customer,product" above "c1,p7"
  [[nodiscard]] bool only_first_lacks_digits() const {
    const auto has_digit = [](std::string_view text) {
      return text.find_first_of("0123456789") != text.npos;
    };
    return first_.size() >= 2 && !has_digit(first_[0]) && !has_digit(first_[1]) &&
           std::ranges::all_of(rows_, [&](const Row& row) {
             return row.size() >= 2 && has_digit(row[0]) && has_digit(row[1]);
           });
  }

  Line line_;
  Row first_;
  std::vector<Row> rows_;  // the others
};

/// The words of a comment: "# FromNodeId\tToNodeId".
Row words_of(std::string_view comment, char separator) {
  const std::string_view text = trimmed(comment.substr(comment.find_first_not_of(" \t#%")));
  Row words = fields_of(text, separator);
  return words.size() > 1 ? words : fields_of(text, blanks);
}

/// The names that comments give the columns: KONECT's first line, or a comment just before the first line.
Row names_in_comments(const FirstLines& first, char separator, std::size_t num_columns, bool typed,
                      std::vector<std::string>& warnings) {
  if (first.comments_before_data == 0) return {};
  const auto words = [&](const Line& line) {
    return line.text.find_first_not_of(" \t#%") == line.text.npos ? Row{} : words_of(line.text, separator);
  };
  const Row konect = words(first.comments.front());
  const bool is_konect = first.comments.front().text.starts_with("%") && konect.size() >= 2 &&
                         (konect[0] == "sym" || konect[0] == "asym" || konect[0] == "bip");
  if (is_konect) {
    if (konect[0] == "bip" && !typed)
      throw LineError(first.comments.front().number, in_quotes(first.comments.front().text),
                      " says that sources and destinations are counted apart, expected two types: --edges "
                      "user:rates:item=FILE");
    if (konect[0] == "sym")
      warnings.emplace_back(
          "the file says that edges have no direction (sym); --add-reverse-edges adds the other one");
    constexpr std::array<std::string_view, 4> names{"source", "target", "weight", "timestamp"};
    if (num_columns <= names.size())
      return {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(num_columns)};
  }
  const Row last = words(first.comments[static_cast<std::size_t>(first.comments_before_data) - 1]);
  return last.size() == num_columns && header_names(last) == HeaderNames::certain ? last : Row{};
}

/// Removes dictionaries from the ends of lines; false if not all lines have one.
bool cut_dictionaries(std::vector<Line>& lines) {
  const auto begin_of = [](const Line& line) { return line.text.find('{'); };
  if (!std::ranges::all_of(lines, [&](const Line& line) {
        return begin_of(line) != line.text.npos && trimmed(line.text).ends_with('}');
      }))
    return false;
  for (Line& line : lines) {
    line.text = trimmed(line.text.substr(0, begin_of(line)));
    if (line.text.ends_with(',') || line.text.ends_with(';')) line.text.remove_suffix(1);
  }
  return true;
}

/// Numbers with blanks between them are no node. With `are_words`, "->" between two nodes, the comma of
/// "0,<tab>1", or that of "1,5" in all lines, is no node and no part of one.
void require_ends(const std::vector<Line>& lines, const std::vector<Row>& rows, const EdgeListFormat& format,
                  bool are_words) {
  const auto is_sign = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x80 && std::isalnum(byte) == 0;
  };
  for (std::size_t c = 0; c < format.columns.size(); ++c) {
    const ColumnRole role = format.columns[c].role;
    if (role != ColumnRole::source && role != ColumnRole::target) continue;
    bool has_signs = are_words;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::string_view node = c < rows[r].size() ? rows[r][c] : std::string_view();
      const Row words = fields_of(unquoted(node), blanks);
      if (format.separator != blanks && words.size() > 1 && std::ranges::all_of(words, is_number))
        throw LineError(lines[r].number, "a node is ", in_quotes(node), " in ", in_quotes(lines[r].text),
                        ", expected --separator");
      has_signs = has_signs && !node.empty() &&
                  (node.ends_with(',') || node.ends_with(';') || std::ranges::all_of(node, is_sign) ||
                   has_number_commas(unquoted(node)));
    }
    if (has_signs)
      throw LineError(lines.front().number, "column ", c + 1, " of ", in_quotes(lines.front().text),
                      " is no node, expected --separator or --columns source=1,target=2");
  }
}

/// Where the first column counts the lines it may be no node.
bool counts_lines(const std::vector<Row>& rows) {
  if (rows.size() < 3 || rows.front().size() < 3) return false;
  const auto integer = [&](std::size_t r, std::size_t c) { return to_integer(unquoted(rows[r][c])); };
  const auto first = integer(0, 0);
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (!integer(r, 0) || !integer(r, 1) || !integer(r, 2) ||
        *integer(r, 0) != *first + static_cast<Index>(r))
      return false;
  return *first == 0 || *first == 1;
}

/// The rows that have as many fields as the first; an empty one behind them does not count.
std::vector<Row> equal_rows(std::vector<Row> rows) {
  const std::size_t length = rows.front().size();
  for (Row& row : rows)
    if (row.size() == length + 1 && row.back().empty()) row.pop_back();
  std::erase_if(rows, [&](const Row& row) { return row.size() != length; });
  return rows;
}

/// Adds warnings of what may be meant in another way.
void warn(const TableSample& sample, const SourceOptions& options, const HeaderGuess& guess,
          std::string_view first_line, EdgeListFormat& format) {
  for (std::size_t c = 0; c < format.columns.size(); ++c)
    if (same_name(format.columns[c].name, "type") && std::ranges::all_of(sample.rows, [&](const Row& fields) {
          return same_name(unquoted(fields[c]), "undirected");
        }))
      format.warnings.push_back("column '" + format.columns[c].name +
                                "' says Undirected; --add-reverse-edges adds the other direction");
  const std::size_t source = format.place_of(ColumnRole::source),
                    target = format.place_of(ColumnRole::target);
  const bool is_names =
      !is_number(unquoted(sample.rows[0][source])) && !is_number(unquoted(sample.rows[0][target]));
  const std::string &from = format.columns[source].name, &to = format.columns[target].name;
  if (!is_names && options.relations.empty() && name_two_kinds(from, to))
    format.warnings.push_back(concat("the ids of '", from, "' and '", to,
                                     "' are taken for the same nodes; if they are counted apart, --edges ",
                                     from, ":to:", to, "=FILE"));
  if (!sample.header.empty() || options.header) return;
  if (is_names && !guess.nodes_recur())
    format.warnings.push_back(concat("the first line, ", in_quotes(first_line),
                                     ", is read as an edge; if it is a header, --header yes"));
  if (options.columns.empty() && !options.ignore_data && counts_lines(sample.rows))
    format.warnings.emplace_back(
        "column 1 counts the lines; if it is no node but a row number, --columns source=2,target=3");
}

}  // namespace

std::string EdgeListFormat::describe() const {
  if (columns.empty()) return "no edges";
  return concat(formats::describe(columns, true), "; separator: ", name_of_separator(separator),
                "; header: ", header_line < 0 ? "none" : concat("line ", header_line + 1));
}

EdgeListFormat guess_edge_list_format(const FirstLines& first, const SourceOptions& options) {
  EdgeListFormat format;
  std::vector<Line> lines = first.lines;
  if (lines.empty()) return format;
  const bool has_weights = std::ranges::any_of(
      lines, [](const Line& line) { return weight_in_dictionary(line.text).has_value(); });
  format.has_dictionaries = cut_dictionaries(lines);
  format.begin = first.begin(false);
  format.separator = options.separator         ? *options.separator
                     : format.has_dictionaries ? guess_separator(lines)
                                               : separator_of(first);
  if (format.separator == ',' && !options.separator && !first.separator && !first.is_parquet)
    require_no_blanks(lines);
  std::vector<Row> rows = rows_of(lines, format.separator);
  const HeaderGuess guess(lines.front(), rows);
  const bool guesses_header = !options.header && !first.is_parquet;
  const bool has_header =
      guesses_header ? !format.has_dictionaries && guess.is_header() : options.header.value_or(true);
  TableSample sample;
  if (has_header) {
    format.header_line = lines.front().number;
    format.begin = first.begin(true);
    sample.header = rows.front();
    rows.erase(rows.begin());
    lines.erase(lines.begin());
  }
  if (lines.empty()) return format;
  sample.rows = equal_rows(rows);
  if (!has_header && !options.header) {
    sample.header = names_in_comments(first, format.separator, sample.rows.front().size(),
                                      !options.relations.empty(), format.warnings);
    if (!sample.header.empty())
      format.header_line = first.comments[static_cast<std::size_t>(first.comments_before_data) - 1].number;
  }
  if (!has_header) require_no_rows_in_comments(first, format.separator, std::ssize(sample.rows.front()));
  while (sample.header.size() > sample.rows.front().size() && sample.header.back().empty())
    sample.header.pop_back();
  try {
    format.columns = column_roles(sample, options);
  } catch (const LineError&) {
    throw;
  } catch (const InputError& error) {
    throw LineError(format.header_line >= 0 ? format.header_line : lines.front().number, error.what());
  }
  if (format.has_dictionaries && has_weights && !options.ignore_data)
    format.columns.push_back({.role = ColumnRole::weight, .field = "weight", .note = "in dictionaries"});
  require_ends(lines, rows, format, !options.separator && options.columns.empty() && !first.is_parquet);
  warn(sample, options, guess, lines.front().text, format);
  return format;
}

namespace {

/// The fields of one line and how to read them.
struct EdgeLine {
  std::string_view text;
  Index number;
};

[[noreturn]] void wrong_number_of_fields(const EdgeLine& line, const EdgeListFormat& format) {
  Index count = 0;
  for (Fields cut(line.text, format.separator); cut.next();) ++count;
  const Index expected = std::ssize(format.columns);
  throw LineError(line.number, count == 1 ? "there is " : "there are ", count,
                  count == 1 ? " field in " : " fields in ", in_quotes(line.text), ", expected ", expected,
                  expected == 2 ? ": source and destination" : " as in the first lines");
}

/// A node without its quotes.
std::string_view node_of(std::string_view field, const EdgeLine& line, KeptTexts& kept) {
  const std::string_view node = unquoted(field);
  const bool begins_with_quotes = node.size() < field.size() && node.starts_with("\"\"");
  if (node.empty() || (node.front() == '"' && !begins_with_quotes))
    throw LineError(line.number, "a node is ", in_quotes(field), " in ", in_quotes(line.text),
                    ", expected a number or a name without separators");
  return unquoted_text(field, kept);
}

double value_of(std::string_view field, Index column, ColumnRole role, const EdgeLine& line) {
  const std::string_view text = unquoted(field);
  const bool is_split = role == ColumnRole::split;
  const bool may_miss = is_split || role == ColumnRole::labels;
  const auto value = may_miss && is_missing_field(text) ? std::numeric_limits<double>::quiet_NaN()
                     : is_split                         ? to_part(text)
                                                        : number_or_flag(text);
  if (is_split && !value)
    throw LineError(line.number, "the split of the edge is ", in_quotes(field),
                    ", expected train, val or test");
  if (is_mask(role) && (!value || (*value != 0 && *value != 1)))
    throw LineError(line.number, "column ", column + 1, " is ", in_quotes(field),
                    ", expected 0 or 1, or true or false, or --ignore-columns");
  if (!value || !(is_finite_real(*value) || (may_miss && std::isnan(*value))))
    throw LineError(line.number, "column ", column + 1, " is ", in_quotes(field), ", expected ",
                    finite_real(value), ", or --ignore-columns");
  return *value;
}

/// The weight in a dictionary: {'weight': 2.0}
double weight_of(std::string_view dictionary, const EdgeLine& line) {
  const auto text = weight_in_dictionary(dictionary);
  const auto value = text ? to_number(*text) : std::nullopt;
  if (!value || !is_finite_real(*value))
    throw LineError(line.number, "the weight in ", in_quotes(dictionary), " is ",
                    in_quotes(text.value_or("")), ", expected ", finite_real(value),
                    " in all lines, or --ignore-columns");
  return *value;
}

/// Whether there is another field; a separator may end the line.
bool has_more(Fields& cut) {
  return cut.next() && !(cut.field().empty() && !cut.next());
}

/// Calls take(line, source, destination) for each edge, with unquoted fields that are not empty.
template <class Take>
TextCounts for_each_edge(std::string_view text, const EdgeListFormat& format, bool are_names, KeptTexts& kept,
                         Array<double>& data, const Take& take) {
  struct Slot {
    ColumnRole role;
    bool is_data;
  };
  std::vector<Slot> columns;
  for (const Column& column : format.columns) columns.push_back({column.role, !column.field.empty()});
  const bool reads_dictionary = format.has_dictionaries && columns.size() > 2 && columns.back().is_data;
  if (reads_dictionary) columns.pop_back();
  const auto skip = [&](std::string_view comment, Index number) {
    require_no_row(comment, number, format.separator, std::ssize(format.columns), are_names);
  };
  const auto take_row = [&](std::string_view whole, Index number) {
    const EdgeLine line{whole, number};
    Fields cut(line.text, format.separator);
    std::string_view source, target;
    for (const Slot& column : columns) {
      if (!cut.next()) wrong_number_of_fields(line, format);
      if (column.role == ColumnRole::source)
        source = node_of(cut.field(), line, kept);
      else if (column.role == ColumnRole::target)
        target = node_of(cut.field(), line, kept);
      else if (column.is_data)
        data.push_back(value_of(cut.field(), &column - columns.data(), column.role, line));
    }
    if (reads_dictionary) data.push_back(weight_of(trimmed(cut.rest()), line));
    if (format.has_dictionaries ? !trimmed(cut.rest()).starts_with('{') : has_more(cut))
      wrong_number_of_fields(line, format);
    if (cut.has_open_quote()) throw LineError(line.number, open_quote);
    take(line, source, target);
  };
  return for_each_row(text, take_row, skip);
}

/// A node whose text is not of digits alone.
Index whole_node(std::string_view field, const EdgeLine& line) {
  if (const auto node = to_whole_number(field)) return *node;
  const auto number = to_number(field);
  const bool is_real = number && !std::isinf(*number) && field.find_first_of(".eEnN") != field.npos;
  if (!is_real)
    throw NotAnInteger(line.number, "a node is ", in_quotes(field), ", expected an integer from 0 on");
  throw LineError(
      line.number, "a node is ", in_quotes(field), ", expected an integer from 0 on",
      std::abs(*number) >= 0x1p53 ? ", not as a floating-point number, which is not exact from 2^53 on" : "",
      " (unless nodes are names: --node-ids names)");
}

}  // namespace

TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, EdgeChunk& edges) {
  edges.clear();
  const Index first_id = format.first_id;
  const bool may_be_names = format.may_be_names;
  const auto number_of = [first_id, may_be_names](std::string_view field, const EdgeLine& line) {
    Index node = 0;
    if (!read_digits(field, node)) node = whole_node(field, line);
    const bool has_zeros = field[0] == '0' && field.size() > 1 && field[1] >= '0' && field[1] <= '9';
    if (may_be_names && (has_zeros || node >= Index{1} << 62))
      throw NotAnInteger(line.number, "a node is ", in_quotes(field),
                         ", expected a number below 2^62 without zeros ahead");
    if (node < first_id)
      throw LineError(line.number, "a node is ", in_quotes(field), ", expected ",
                      first_id == 0 ? "no negative number (unless nodes are names: --node-ids names)"
                                    : "a number from 1 on, as --node-ids says");
    return node - first_id;
  };
  KeptTexts kept;
  return for_each_edge(text, format, false, kept, edges.data,
                       [&](const EdgeLine& line, std::string_view source, std::string_view destination) {
                         edges.src.push_back(number_of(source, line));
                         edges.dst.push_back(number_of(destination, line));
                       });
}

TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, KeyedEdges& edges) {
  edges.clear();
  return for_each_edge(text, format, true, edges.kept, edges.data,
                       [&](const EdgeLine& line, std::string_view source, std::string_view destination) {
                         edges.lines.push_back(line.number);
                         edges.ends.push_back(source);
                         edges.ends.push_back(destination);
                       });
}

}  // namespace sar::formats
