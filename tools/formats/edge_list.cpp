#include "edge_list.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
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

/// The number of a part of the edges, by its name.
std::optional<double> to_part(std::string_view field) {
  for (const auto& [name, part] :
       {std::pair{"train", 0}, {"val", 1}, {"valid", 1}, {"validation", 1}, {"test", 2}})
    if (field == name) return part;
  return to_number(field);
}

bool guess_header(const std::vector<std::string_view>& lines, char separator) {
  const auto first = fields_of(lines[0], separator);
  if (!first.empty() && names_an_end(first[0])) return true;
  for (std::size_t column = 0; column < first.size() && lines.size() > 1; ++column) {
    const auto all_others = [&](const auto& are) {
      return std::all_of(lines.begin() + 1, lines.end(), [&](std::string_view line) {
        const auto fields = fields_of(line, separator);
        return column < fields.size() && are(fields[column]);
      });
    };
    const bool may_be_part = column >= 2 && !first[column].empty() && !to_part(first[column]);
    if (may_be_part && all_others([](std::string_view f) { return f.empty() || to_part(f).has_value(); }))
      return true;
    if (!to_number(first[column]) && all_others([](std::string_view f) { return to_number(f).has_value(); }))
      return true;
  }
  return false;
}

/// What an EdgeField is called in DatasetOptions::fields, and usually in a header.
struct EdgeFieldNames {
  const char* key;
  const char* field;
  std::vector<std::string> usual;
};

const EdgeFieldNames& names_of(EdgeField field) {
  static const std::array<EdgeFieldNames, num_edge_fields> names{
      {{"edge_split", "split", {"split"}},
       {"edge_labels", "labels", {"label", "labels"}},
       {"edge_type", "type", {"type"}},
       {"edge_train_mask", "train_mask", {}},
       {"edge_val_mask", "val_mask", {}},
       {"edge_test_mask", "test_mask", {}},
       {"weight", "weight", {}}}};
  return names[static_cast<std::size_t>(field)];
}

/// The column behind the nodes that the header calls one of `names`; -1: none. `line` is that of the header.
Index find_column(const std::vector<std::string_view>& header, Index line,
                  const std::vector<std::string>& names) {
  Index found = -1;
  for (Index column = 2; column < std::ssize(header); ++column) {
    if (std::ranges::find(names, lower_case(header[column]), lower_case) == names.end()) continue;
    if (found >= 0)
      throw LineError(line, concat("columns ", found + 3, " and ", column + 1, " are called ",
                                   quoted(header[found + 2]), " and ", quoted(header[column]),
                                   ", expected only one of them (or a name that --fields gives)"));
    found = column - 2;
  }
  return found;
}

/// Each column has one EdgeField at most; the names of the options go before the usual ones.
void find_named(const std::vector<std::string_view>& header, Index line, const SourceOptions& options,
                EdgeListFormat& format) {
  const auto is_taken = [&](Index column) {
    return std::ranges::find(format.named, column) != format.named.end();
  };
  const auto find = [&](std::size_t i, const std::vector<std::string>& names) {
    if (format.named[i] >= 0) return false;
    const Index column = find_column(header, line, names);
    if (column >= 0 && !is_taken(column)) format.named[i] = column;
    return column >= 0;
  };
  for (std::size_t i = 0; i < num_edge_fields; ++i)
    if (const auto given = options.fields.find(names_of(EdgeField{static_cast<int>(i)}).key);
        given != options.fields.end())
      format.is_given[i] = find(i, {given->second});
  for (std::size_t i = 0; i < num_edge_fields; ++i)
    if (!format.is_given[i]) find(i, names_of(EdgeField{static_cast<int>(i)}).usual);
  const auto labels = static_cast<std::size_t>(EdgeField::labels);
  if (options.edge_labels && !format.is_given[labels]) find(labels, {"rating", "score", "value"});
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
      const bool may_miss = is_split || column == format.named[static_cast<std::size_t>(EdgeField::labels)];
      const auto value = may_miss && field.empty() ? std::numeric_limits<double>::quiet_NaN()
                         : is_split                ? to_part(field)
                                                   : to_number(field);
      if (is_split && !value)
        throw LineError(lines.number(), concat("the split of the edge is ", quoted(cut.field()),
                                               ", expected train, val or test"));
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
                                                     const SourceOptions& options) {
  constexpr std::size_t most = 50;
  std::vector<std::string_view> sample;
  EdgeListFormat format;
  TextPosition behind_first;
  std::vector<std::string_view> header;
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
  format.separator = options.separator.value_or(guess_separator(sample));
  if (options.header.value_or(guess_header(sample, format.separator))) {
    format.begin = behind_first;
    header = fields_of(sample[0], format.separator);
    sample.erase(sample.begin());
  }
  format.ignore_data = options.ignore_data;
  if (sample.empty()) return format;
  const Index fields = std::ssize(fields_of(sample[0], format.separator));
  format.data_columns = std::max<Index>(0, fields - 2);
  if (format.ignore_data) return format;
  const Index line = format.begin.line - 1;  // of the header
  if (std::ssize(header) > fields)
    throw LineError(line, concat("the header has ", std::ssize(header), " fields, and the edge ",
                                 quoted(sample[0]), " has ", fields, ", expected as many"));
  find_named(header, line, options, format);
  return format;
}

std::string name_of(EdgeField field, const EdgeListFormat& format, const SourceOptions& options) {
  const EdgeFieldNames& names = names_of(field);
  return format.is_given[static_cast<std::size_t>(field)] ? options.fields.at(names.key) : names.field;
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
