// SPDX-License-Identifier: MIT
#include "edge_list.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace sar::formats {
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
  throw LineError(line.number,
                  concat(count == 1 ? "there is " : "there are ", count,
                         count == 1 ? " field in " : " fields in ", in_quotes(line.text), ", expected ",
                         expected, expected == 2 ? ": source and destination" : " as in the first lines"));
}

/// A node without its quotes.
std::string_view node_of(std::string_view field, const EdgeLine& line) {
  const std::string_view node = unquoted(field);
  if (node.empty() || node.front() == '"')
    throw LineError(line.number, concat("a node is ", in_quotes(field), " in ", in_quotes(line.text),
                                        ", expected a number or a name without separators"));
  return node;
}

double value_of(std::string_view field, Index column, ColumnRole role, const EdgeLine& line) {
  const std::string_view text = unquoted(field);
  const bool is_split = role == ColumnRole::split;
  const bool may_miss = is_split || role == ColumnRole::labels;
  const auto value = may_miss && text.empty() ? std::numeric_limits<double>::quiet_NaN()
                     : is_split               ? to_part(text)
                                              : to_number(text);
  if (is_split && !value)
    throw LineError(line.number,
                    concat("the split of the edge is ", in_quotes(field), ", expected train, val or test"));
  if (!value || !(is_finite_real(*value) || (may_miss && std::isnan(*value))))
    throw LineError(line.number, concat("column ", column + 1, " is ", in_quotes(field), ", expected ",
                                        finite_real(value), ", or --ignore-columns"));
  return *value;
}

/// The weight in a dictionary: {'weight': 2.0}
double weight_of(std::string_view dictionary, const EdgeLine& line) {
  const auto text = weight_in_dictionary(dictionary);
  const auto value = text ? to_number(*text) : std::nullopt;
  if (!value || !is_finite_real(*value))
    throw LineError(line.number,
                    concat("the weight in ", in_quotes(dictionary), " is ", in_quotes(text.value_or("")),
                           ", expected ", finite_real(value), " in all lines, or --ignore-columns"));
  return *value;
}

/// Whether there is another field; a separator may end the line.
bool has_more(Fields& cut) {
  return cut.next() && !(cut.field().empty() && !cut.next());
}

/// Calls take(line, source, destination) for each edge, with unquoted fields that are not empty.
template <class Take>
TextCounts for_each_edge(std::string_view text, const EdgeListFormat& format, std::vector<double>& data,
                         const Take& take) {
  struct Column {
    ColumnRole role;
    bool is_data;
  };
  std::vector<Column> columns;
  for (const EdgeColumn& column : format.columns) columns.push_back({column.role, !column.field.empty()});
  const bool reads_dictionary = format.has_dictionaries && columns.size() > 2 && columns.back().is_data;
  if (reads_dictionary) columns.pop_back();
  Lines lines(text);
  Index rows = 0;
  while (lines.next()) {
    if (is_comment(lines.line())) continue;
    const EdgeLine line{lines.line(), lines.number()};
    Fields cut(line.text, format.separator);
    std::string_view source, target;
    for (const Column& column : columns) {
      if (!cut.next()) wrong_number_of_fields(line, format);
      if (column.role == ColumnRole::source)
        source = node_of(cut.field(), line);
      else if (column.role == ColumnRole::target)
        target = node_of(cut.field(), line);
      else if (column.is_data)
        data.push_back(value_of(cut.field(), &column - columns.data(), column.role, line));
    }
    if (reads_dictionary) data.push_back(weight_of(trimmed(cut.rest()), line));
    if (format.has_dictionaries ? !trimmed(cut.rest()).starts_with('{') : has_more(cut))
      wrong_number_of_fields(line, format);
    if (cut.has_open_quote()) throw LineError(line.number, open_quote);
    take(line, source, target);
    ++rows;
  }
  return {lines.count(), rows};
}

/// A node whose text is not of digits alone.
Index whole_node(std::string_view field, const EdgeLine& line) {
  if (const auto node = to_whole_number(field)) return *node;
  const auto number = to_number(field);
  const bool is_real = number && !std::isinf(*number) && field.find_first_of(".eEnN") != field.npos;
  if (!is_real)
    throw NotAnInteger(line.number,
                       concat("a node is ", in_quotes(field), ", expected an integer from 0 on"));
  throw LineError(
      line.number,
      concat("a node is ", in_quotes(field), ", expected an integer from 0 on",
             std::abs(*number) >= 0x1p53 ? ", not as a floating-point number, which is not exact from 2^53 on"
                                         : "",
             " (unless nodes are names: --node-ids names)"));
}

}  // namespace

void IntegerEdges::clear() {
  src.clear();
  dst.clear();
  data.clear();
}
void KeyedEdges::clear() {
  ends.clear();
  data.clear();
}

TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, IntegerEdges& edges) {
  edges.clear();
  const Index first_id = format.first_id;
  const auto number_of = [first_id](std::string_view field, const EdgeLine& line) {
    Index node = 0;
    if (!read_digits(field, node)) node = whole_node(field, line);
    if (node < first_id)
      throw LineError(line.number,
                      concat("a node is ", in_quotes(field), ", expected ",
                             first_id == 0 ? "no negative number (unless nodes are names: --node-ids names)"
                                           : "a number from 1 on, as --node-ids says"));
    return node - first_id;
  };
  return for_each_edge(text, format, edges.data,
                       [&](const EdgeLine& line, std::string_view source, std::string_view destination) {
                         edges.src.push_back(number_of(source, line));
                         edges.dst.push_back(number_of(destination, line));
                       });
}

TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, KeyedEdges& edges) {
  edges.clear();
  return for_each_edge(text, format, edges.data,
                       [&](const EdgeLine&, std::string_view source, std::string_view destination) {
                         edges.ends.push_back(source);
                         edges.ends.push_back(destination);
                       });
}

}  // namespace sar::formats
