#include "edge_list.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

namespace sar::formats {
namespace {

std::string_view unquoted(std::string_view field) noexcept {
  if (field.size() < 2 || field.front() != '"' || field.back() != '"') return field;
  return field.substr(1, field.size() - 2);
}

std::vector<std::string_view> fields_of(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  for (Fields cut(line, separator); cut.next();) fields.push_back(unquoted(cut.field()));
  return fields;
}

std::string lower_case(std::string_view field) {
  std::string lower;
  for (const char c : field)
    if (c != '_' && c != ' ') lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool names_an_end(std::string_view field) {
  const std::string lower = lower_case(field);
  constexpr std::array<std::string_view, 7> names{"source",     "src",    "from",  "sourceid",
                                                  "fromnodeid", "fromid", "target"};
  return std::find(names.begin(), names.end(), lower) != names.end();
}

char guess_separator(const std::vector<std::string_view>& lines) {
  for (const char candidate : {'\t', ',', ';'})
    if (std::all_of(lines.begin(), lines.end(),
                    [&](std::string_view line) { return trimmed(line).find(candidate) != line.npos; }))
      return candidate;
  return blanks;
}

bool guess_header(const std::vector<std::string_view>& lines, char separator) {
  const auto first = fields_of(lines[0], separator);
  if (!first.empty() && names_an_end(first[0])) return true;
  for (std::size_t column = 0; column < first.size() && lines.size() > 1; ++column) {
    if (to_number(first[column])) continue;
    if (std::all_of(lines.begin() + 1, lines.end(), [&](std::string_view line) {
          const auto fields = fields_of(line, separator);
          return column < fields.size() && to_number(fields[column]);
        }))
      return true;
  }
  return false;
}

std::array<Index, num_edge_fields> find_named(const std::vector<std::string_view>& header) {
  std::array<Index, num_edge_fields> named{-1, -1, -1};
  for (std::size_t column = 2; column < header.size(); ++column)
    for (const auto& [name, field] : {std::pair{"split", EdgeField::split},
                                      {"label", EdgeField::labels},
                                      {"labels", EdgeField::labels},
                                      {"type", EdgeField::type}})
      if (Index& found = named[static_cast<std::size_t>(field)];
          found < 0 && lower_case(header[column]) == name)
        found = static_cast<Index>(column) - 2;
  return named;
}

/// The number of a part of the edges, by its name.
std::optional<double> to_part(std::string_view field) {
  for (const auto& [name, part] :
       {std::pair{"train", 0}, {"val", 1}, {"valid", 1}, {"validation", 1}, {"test", 2}})
    if (field == name) return part;
  return to_number(field);
}

[[noreturn]] void wrong_number_of_fields(std::string_view line, Index number, const EdgeListFormat& format) {
  Index count = 0;
  for (Fields cut(line, format.separator); cut.next();) ++count;
  throw LineError(number,
                  concat("there are ", count, count == 1 ? " field in " : " fields in ", quoted(line),
                         ", expected ", 2 + format.data_columns,
                         format.data_columns == 0 ? ": source and destination" : " as in the first lines"));
}

/// Calls take(line number, source, destination) for each edge, with unquoted fields that are not empty.
template <class Take>
TextCounts for_each_edge(std::string_view text, const EdgeListFormat& format, std::vector<double>& data,
                         const Take& take) {
  Lines lines(text);
  Index rows = 0;
  while (lines.next()) {
    if (is_comment(lines.line())) continue;
    Fields cut(lines.line(), format.separator);
    std::array<std::string_view, 2> ends;
    for (std::string_view& end : ends) {
      if (!cut.next()) wrong_number_of_fields(lines.line(), lines.number(), format);
      end = unquoted(cut.field());
      if (end.empty() || end.front() == '"')
        throw LineError(lines.number(),
                        concat("a node is ", quoted(cut.field()), " in ", quoted(lines.line()),
                               ", expected a number or a name without separators"));
    }
    for (Index column = 0; column < format.data_columns; ++column) {
      if (!cut.next()) wrong_number_of_fields(lines.line(), lines.number(), format);
      if (format.ignore_data) continue;
      const std::string_view field = unquoted(cut.field());
      const bool is_split = column == format.named[static_cast<std::size_t>(EdgeField::split)];
      const auto value = is_split ? to_part(field) : to_number(field);
      if (is_split && !value)
        throw LineError(lines.number(), concat("the split of the edge is ", quoted(cut.field()),
                                               ", expected train, val or test"));
      const bool may_miss = column == format.named[static_cast<std::size_t>(EdgeField::labels)];
      if (!value || !(std::isfinite(*value) || (may_miss && std::isnan(*value))))
        throw LineError(lines.number(),
                        concat("column ", column + 3, " is ", quoted(cut.field()),
                               ", expected a finite number (columns behind the two nodes can be ignored)"));
      data.push_back(*value);
    }
    if (cut.next()) wrong_number_of_fields(lines.line(), lines.number(), format);
    take(lines.number(), ends[0], ends[1]);
    ++rows;
  }
  return {lines.count(), rows};
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

std::optional<EdgeListFormat> guess_edge_list_format(std::string_view beginning, bool whole,
                                                     std::optional<char> separator,
                                                     std::optional<bool> header, bool ignore_data) {
  constexpr std::size_t most = 50;
  std::vector<std::string_view> sample;
  EdgeListFormat format;
  TextPosition behind_first;
  Lines lines(beginning);
  while (sample.size() < most && lines.next()) {
    if (lines.rest().empty() && !whole && !beginning.ends_with('\n')) break;  // perhaps not the whole line
    if (is_comment(lines.line())) continue;
    sample.push_back(lines.line());
    if (sample.size() == 1)
      behind_first = {static_cast<Index>(beginning.size() - lines.rest().size()), lines.count()};
  }
  if (!whole && sample.size() < 2) return std::nullopt;
  if (sample.empty()) return format;
  format.separator = separator.value_or(guess_separator(sample));
  if (header.value_or(guess_header(sample, format.separator))) {
    format.begin = behind_first;
    if (!ignore_data) format.named = find_named(fields_of(sample[0], format.separator));
    sample.erase(sample.begin());
  }
  format.ignore_data = ignore_data;
  if (!sample.empty())
    format.data_columns =
        std::max<Index>(0, static_cast<Index>(fields_of(sample[0], format.separator).size()) - 2);
  return format;
}

TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, IntegerEdges& edges) {
  edges.clear();
  return for_each_edge(
      text, format, edges.data, [&](Index number, std::string_view source, std::string_view destination) {
        for (const auto& [field, column] : {std::pair{source, &edges.src}, {destination, &edges.dst}}) {
          const auto node = to_integer(field);
          if (!node)
            throw NotAnInteger(number,
                               concat("a node is ", quoted(field), ", expected an integer from 0 on"));
          if (*node < 0)
            throw LineError(number, concat("a node is ", quoted(field),
                                           ", expected no negative number (unless nodes are names)"));
          column->push_back(*node);
        }
      });
}

TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, KeyedEdges& edges) {
  edges.clear();
  return for_each_edge(text, format, edges.data,
                       [&](Index, std::string_view source, std::string_view destination) {
                         edges.ends.push_back(source);
                         edges.ends.push_back(destination);
                       });
}

}  // namespace sar::formats
