// SPDX-License-Identifier: MIT

// Loop order: parallel blocks of rows (2^12 numbers, but at least 64 rows), then columns, then the rows of
// the block, whose rows of x stay in the cache. Each value is read and written once. If rows are listed,
// one thread checks the list first; copy_to_columns() needs one bit per row of the shortest column for it.
#include <sar/core/tensor/columns.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Rows per parallel block. A block is copied column by column, so its rows of x should fit in the cache.
Index grain(std::size_t columns) {
  return std::max(Index{64}, (Index{1} << 12) / static_cast<Index>(columns));
}

/// Calls body(i, value) for the selected rows i in [begin, end) of a column.
template <class Void, class Body>
void for_rows(const BasicHostColumn<Void>& column, const HostRows& rows, Index begin, Index end,
              const Body& body) {
  rows.visit([&](const auto& row) {
    const auto for_values = [&](auto* values) {
      for (Index i = begin; i < end; ++i) body(i, values[row(i) * column.stride()]);
    };
    using Float = std::conditional_t<std::is_const_v<Void>, const float, float>;
    using Double = std::conditional_t<std::is_const_v<Void>, const double, double>;
    if (column.holds_double())
      for_values(static_cast<Double*>(column.values()));
    else
      for_values(static_cast<Float*>(column.values()));
  });
}

/// Throws InputError unless every selected row is in [0, num_rows).
void check_rows(const char* call, Index column, Index num_rows, const HostRows& rows) {
  rows.visit([&](const auto& row) {
    const Index size = rows.size(num_rows);
    for (Index i = 0; i < size; ++i)
      require<InputError>(0 <= row(i) && row(i) < num_rows, call, ": rows[", i, "] is ", row(i),
                          ", but column ", column, " has ", num_rows, " rows");
  });
}

/// Throws InputError if a row is selected twice.
void check_rows_differ(Index num_rows, const HostRows& rows) {
  rows.visit([&](const auto& row) {
    std::vector<bool> seen(static_cast<std::size_t>(num_rows));
    const Index size = rows.size(num_rows);
    for (Index i = 0; i < size; ++i) {
      const auto place = static_cast<std::size_t>(row(i));
      require<InputError>(!seen[place], "copy_to_columns: rows[", i, "] is ", row(i),
                          " as one before it, expected each row once");
      seen[place] = true;
    }
  });
}

/// Returns the index of the column with the fewest rows.
template <class Column>
Index shortest(std::span<const Column> columns) {
  const auto shorter = [](const Column& a, const Column& b) { return a.num_rows() < b.num_rows(); };
  return std::min_element(columns.begin(), columns.end(), shorter) - columns.begin();
}

}  // namespace

Tensor from_columns(std::span<const ConstHostColumn> columns, const HostRows& rows) {
  require<ShapeError>(!columns.empty(), "from_columns: there are no columns, expected one at least");
  const Index all = columns[0].num_rows();
  for (Index j = 0; rows.all() && j < std::ssize(columns); ++j)
    require<ShapeError>(columns[j].num_rows() == all, "from_columns: column ", j, " has ",
                        columns[j].num_rows(), " values, expected ", all, " as in column 0");
  const Index least = shortest(columns);
  if (!rows.all()) check_rows("from_columns", least, columns[least].num_rows(), rows);

  Tensor x({rows.size(all), std::ssize(columns)});
  const Index width = std::ssize(columns);
  real* const out = x.data();
  parallel_for(x.num_rows(), grain(columns.size()), [&](Index begin, Index end) {
    for (Index j = 0; j < width; ++j)
      for_rows(columns[j], rows, begin, end,
               [=](Index i, auto value) { out[i * width + j] = static_cast<real>(value); });
  });
  return x;
}

Tensor from_columns(std::initializer_list<ConstHostColumn> columns, const HostRows& rows) {
  return from_columns(std::span(columns.begin(), columns.size()), rows);
}

void copy_to_columns(const Tensor& x, std::span<const HostColumn> columns, const HostRows& rows) {
  require<ShapeError>(x.defined() && !columns.empty() && std::ssize(columns) == x.row_size(),
                      "copy_to_columns: there are ", columns.size(), " columns for a tensor of shape ",
                      x.shape(), ", expected one for each value of a row");
  for (Index j = 0; rows.all() && j < std::ssize(columns); ++j)
    require<ShapeError>(columns[j].num_rows() == x.num_rows(), "copy_to_columns: column ", j, " has ",
                        columns[j].num_rows(), " values for a tensor of shape ", x.shape(), ", expected ",
                        x.num_rows());
  if (!rows.all()) {
    const Index size = rows.size(0), least = shortest(columns);
    require<ShapeError>(size == x.num_rows(), "copy_to_columns: ", size, " rows for a tensor of shape ",
                        x.shape(), ", expected ", x.num_rows());
    check_rows("copy_to_columns", least, columns[least].num_rows(), rows);
    check_rows_differ(columns[least].num_rows(), rows);
  }
  const Index width = std::ssize(columns);
  const real* const in = x.data();
  parallel_for(x.num_rows(), grain(columns.size()), [&](Index begin, Index end) {
    for (Index j = 0; j < width; ++j)
      for_rows(columns[j], rows, begin, end,
               [=]<class T>(Index i, T& value) { value = static_cast<T>(in[i * width + j]); });
  });
}

void copy_to_columns(const Tensor& x, std::initializer_list<HostColumn> columns, const HostRows& rows) {
  copy_to_columns(x, std::span(columns.begin(), columns.size()), rows);
}

Array<Index> box_rows(std::initializer_list<Index> extents, std::initializer_list<Index> begin,
                      std::initializer_list<Index> end) {
  require<ShapeError>(begin.size() == extents.size() && end.size() == extents.size(),
                      "box_rows: ", extents.size(), " extents, ", begin.size(), " begins and ", end.size(),
                      " ends, expected as many");
  Array<Index> rows{0};
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const Index extent = extents.begin()[d], first = begin.begin()[d], last = end.begin()[d];
    require<ShapeError>(0 <= first && first <= last && last <= extent, "box_rows: cells ", first, " to ",
                        last, " (the end not included) of extent ", d, ", which has ", extent);
    Array<Index> longer;
    longer.reserve(rows.size() * static_cast<std::size_t>(last - first));
    for (const Index row : rows)
      for (Index k = first; k < last; ++k) longer.push_back(row * extent + k);
    rows = std::move(longer);
  }
  return rows;
}
}}  // namespace sar
