// SPDX-License-Identifier: MIT
#include "csv_table.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <optional>
#include <string>

namespace sar::formats {
namespace {

bool is_missing(std::string_view field) noexcept {
  return field.empty() || field == "\"\"" || field == "nan" || field == "NaN" || field == "NA";
}

[[noreturn]] void wrong_field(Index line, Index column, std::string_view field, const std::string& expected) {
  throw LineError(line, concat("column ", column + 1, " is ", in_quotes(field), ", expected ", expected));
}

std::int64_t parse_integer(std::string_view field, const TableFormat& format, Index line, Index column) {
  if (format.may_miss && is_missing(field)) return -1;
  const auto value = to_whole_number(field);
  if (!value && (to_number(field) || is_missing(field)))
    throw NotAnInteger(line,
                       concat("column ", column + 1, " is ", in_quotes(field), ", expected an integer"));
  if (!value) wrong_field(line, column, field, "an integer");
  if (*value < format.smallest || *value > format.largest)
    wrong_field(line, column, field,
                format.smallest <= format.largest ? concat(format.smallest, " to ", format.largest) : "none");
  return *value;
}

double parse_real(std::string_view field, const TableFormat& format, Index line, Index column) {
  if (format.may_miss && is_missing(field)) return std::numeric_limits<double>::quiet_NaN();
  const auto value = to_number(field);
  if (!value || !is_finite_real(*value)) wrong_field(line, column, field, finite_real(value));
  return *value;
}

}  // namespace

Index count_columns(std::string_view beginning) {
  Lines lines(beginning);
  while (lines.next()) {
    Index columns = 0;
    for (Fields fields(lines.line(), ','); fields.next();) ++columns;
    if (columns > 0) return columns;
  }
  return 0;
}

template <class T>
TextCounts parse_table(std::string_view text, const TableFormat& format, std::vector<T>& values) {
  values.clear();
  Lines lines(text);
  Index rows = 0;
  while (lines.next()) {
    Fields fields(lines.line(), ',');
    Index column = 0;
    for (; column < format.columns && fields.next(); ++column) {
      if constexpr (std::floating_point<T>)
        values.push_back(static_cast<T>(parse_real(fields.field(), format, lines.number(), column)));
      else
        values.push_back(parse_integer(fields.field(), format, lines.number(), column));
    }
    if (column == 0) continue;
    if (column < format.columns || fields.next())
      throw LineError(lines.number(), concat("there are ", column < format.columns ? "too few" : "too many",
                                             " fields in ", in_quotes(lines.line()), ", expected ",
                                             format.columns, " with commas between them"));
    ++rows;
  }
  return {lines.count(), rows};
}

template <class T>
Index read_table(const Communicator& comm, const std::string& path, const TableFormat& format,
                 Index block_bytes, FunctionRef<void(std::vector<T>& values, const BlockPlace& at)> take) {
  std::vector<T> values;
  const auto require_rows = [&](bool condition, const char* at_least, Index rows) {
    require<InputError>(condition || format.rows < 0, path, ": there are ", at_least, rows,
                        format.wrong_rows);
  };
  const TextCounts counts = read_lines(
      comm, path, {}, block_bytes, [&](std::string_view text) { return parse_table(text, format, values); },
      [&](const BlockPlace& at) {
        require_rows(at.rows_so_far <= format.rows, "at least ", at.rows_so_far);
        take(values, at);
      });
  require_rows(counts.rows == format.rows, "", counts.rows);
  return counts.rows;
}

Index count_columns(const Communicator& comm, const std::string& path) {
  Index columns = 0;
  comm.agree([&] {
    if (comm.rank() == 0) columns = count_columns(read_beginning(path, Index{1} << 22));
  });
  return std::max<Index>(1, comm.all_reduce(columns));
}

#define SAR_TABLE_OF(T)                                                                            \
  template TextCounts parse_table<T>(std::string_view, const TableFormat&, std::vector<T>&);       \
  template Index read_table<T>(const Communicator&, const std::string&, const TableFormat&, Index, \
                               FunctionRef<void(std::vector<T>&, const BlockPlace&)>)
SAR_TABLE_OF(std::int64_t);
SAR_TABLE_OF(float);
SAR_TABLE_OF(double);
#undef SAR_TABLE_OF

}  // namespace sar::formats
