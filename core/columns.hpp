/// Between a host's columns, which lie where the host keeps them, and a tensor that has them side by side.
#pragma once

#include <sar/core/host_column.hpp>
#include <sar/core/tensor.hpp>

#include <initializer_list>
#include <ranges>
#include <span>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// [n, k] from k columns of a host, in either precision: x[i, j] = columns[j][rows[i]], or columns[j][i]
/// without `rows`. Throws ShapeError when there is no column, and, without `rows`, for columns of different
/// lengths; InputError for a row that a column does not have.
Tensor from_columns(std::span<const ConstHostColumn> columns, const HostRows& rows = {});
Tensor from_columns(std::initializer_list<ConstHostColumn> columns, const HostRows& rows = {});
/// The same, of a list of anything that is a column, such as std::vector<std::span<const double>>.
template <std::ranges::contiguous_range Columns>
requires std::convertible_to<std::ranges::range_reference_t<const Columns>, ConstHostColumn> Tensor
from_columns(const Columns& columns, const HostRows& rows = {}) {
  const std::vector<ConstHostColumn> list(columns.begin(), columns.end());
  return from_columns(std::span(list), rows);
}

/// The inverse: columns[j][rows[i]] = x[i, j], rows of x flattened. What `rows` does not name stays as it is.
/// Columns must not overlap. Throws ShapeError unless there is a column for each value of a row and, without
/// `rows`, each has x.num_rows() rows; or when `rows` has another length; InputError for a row that a column
/// does not have or that occurs twice. Writes nothing then.
void copy_to_columns(const Tensor& x, std::span<const HostColumn> columns, const HostRows& rows = {});
void copy_to_columns(const Tensor& x, std::initializer_list<HostColumn> columns, const HostRows& rows = {});
template <std::ranges::contiguous_range Columns>
requires std::convertible_to<std::ranges::range_reference_t<const Columns>, HostColumn>
void copy_to_columns(const Tensor& x, const Columns& columns, const HostRows& rows = {}) {
  const std::vector<HostColumn> list(columns.begin(), columns.end());
  copy_to_columns(x, std::span(list), rows);
}

}  // namespace sar
