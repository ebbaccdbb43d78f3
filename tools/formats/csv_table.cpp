// SPDX-License-Identifier: MIT
#include "csv_table.hpp"

#include "formats/packed/sliced_rows.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <concepts>
#include <span>
#include <utility>

namespace sar::formats {
namespace {

/// The number of a field. Throws LineError.
template <class T>
T parse_field(std::string_view field, const TableFormat& format, Index line, Index column) {
  const auto refuse = [&](const auto& expected) {
    throw LineError(line, "column ", column + 1, " is ", in_quotes(field), ", expected ", expected);
  };
  const auto is_missing = [&] { return is_missing_field(unquoted(field)); };
  if constexpr (std::floating_point<T>) {
    if (format.may_miss && is_missing()) return std::numeric_limits<T>::quiet_NaN();
    const auto value = to_number(field);
    if (!value || !is_finite_real(*value)) refuse(finite_real(value));
    return static_cast<T>(*value);
  } else {
    if (format.may_miss && is_missing()) return -1;
    const auto value = to_whole_number(field);
    if (!value && (to_number(field) || is_missing()))
      throw NotAnInteger(line, "column ", column + 1, " is ", in_quotes(field), ", expected an integer");
    if (!value) refuse("an integer");
    if (*value < format.smallest || *value > format.largest)
      refuse(format.smallest <= format.largest ? concat(format.smallest, " to ", format.largest) : "none");
    return *value;
  }
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
      values.push_back(parse_field<T>(fields.field(), format, lines.number(), column));
    }
    if (column == 0) continue;
    if (column < format.columns || fields.next())
      throw LineError(lines.number(), "there are ", column < format.columns ? "too few" : "too many",
                      " fields in ", in_quotes(lines.line()), ", expected ", format.columns,
                      " with commas between them");
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

template <class T>
DataArray read_table_rows(const Communicator& comm, const std::string& path, const TableFormat& format,
                          Index block_bytes, const PartitionBook* book) {
  DataArray mine;
  const auto allocate = [&](const PartitionBook& slices) {
    std::vector<Index> row_shape;
    if (format.columns > 1 || std::floating_point<T>) row_shape.push_back(format.columns);
    const NpyType type = std::same_as<T, std::int64_t> ? NpyType::int64
                         : std::same_as<T, float>      ? NpyType::float32
                                                       : NpyType::float64;
    comm.agree([&] { mine = DataArray(type, row_shape, slices.num_nodes(comm.rank())); });
  };
  const auto send = [&](const PartitionBook& slices, Index first, std::span<const T> values) {
    send_rows(comm, slices, first, std::as_bytes(values), mine.row_bytes(), mine.bytes.data());
  };
  if (book != nullptr) allocate(*book);
  std::vector<std::pair<Index, std::vector<T>>> blocks;  // kept until the number of rows is known
  const Index rows =
      read_table<T>(comm, path, format, block_bytes, [&](std::vector<T>& values, const BlockPlace& at) {
        if (book != nullptr)
          send(*book, at.first_row, values);
        else
          comm.agree([&] { blocks.emplace_back(at.first_row, std::exchange(values, {})); });
      });
  if (book != nullptr) return mine;
  const PartitionBook slices = PartitionBook::even(rows, comm.size());
  allocate(slices);
  for (auto& [first, values] : blocks) send(slices, first, std::exchange(values, {}));
  return mine;
}

std::vector<Index> read_list(const Communicator& comm, const std::string& path, const TableFormat& format,
                             Index block_bytes) {
  const DataArray mine = read_table_rows<std::int64_t>(comm, path, format, block_bytes);
  return comm.all_gather(
      std::span(reinterpret_cast<const Index*>(mine.bytes.data()), static_cast<std::size_t>(mine.num_rows)));
}

Index count_columns(const Communicator& comm, const std::string& path) {
  Index columns = 0;
  comm.agree([&] {
    if (comm.rank() == 0) columns = count_columns(read_beginning(path, Index{1} << 22));
  });
  return std::max<Index>(1, comm.all_reduce(columns));
}

#define SAR_TABLE_OF(T)                                                                                     \
  template TextCounts parse_table<T>(std::string_view, const TableFormat&, std::vector<T>&);                \
  template Index read_table<T>(const Communicator&, const std::string&, const TableFormat&, Index,          \
                               FunctionRef<void(std::vector<T>&, const BlockPlace&)>);                      \
  template DataArray read_table_rows<T>(const Communicator&, const std::string&, const TableFormat&, Index, \
                                        const PartitionBook*)
SAR_TABLE_OF(std::int64_t);
SAR_TABLE_OF(float);
SAR_TABLE_OF(double);
#undef SAR_TABLE_OF

}  // namespace sar::formats
