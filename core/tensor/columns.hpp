// SPDX-License-Identifier: MIT

/// Copies between separate columns of a host program and the columns of a tensor.
#pragma once

#include <sar/core/tensor/host_column.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <initializer_list>
#include <ranges>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Returns a tensor [n, k] with the values of k host columns of either precision: x[i, j] =
/// columns[j][rows[i]], or columns[j][i] without `rows`. Throws ShapeError if there are no columns or,
/// without `rows`, if their lengths differ; InputError if a row is out of range.
Tensor from_columns(std::span<const ConstHostColumn> columns, const HostRows& rows = {});
Tensor from_columns(std::initializer_list<ConstHostColumn> columns, const HostRows& rows = {});
/// The same for a range of any column type, such as std::vector<std::span<const double>>.
template <std::ranges::contiguous_range Columns>
requires std::convertible_to<std::ranges::range_reference_t<const Columns>, ConstHostColumn> Tensor
from_columns(const Columns& columns, const HostRows& rows = {}) {
  const std::vector<ConstHostColumn> list(columns.begin(), columns.end());
  return from_columns(std::span(list), rows);
}

/// Copies a tensor to host columns: columns[j][rows[i]] = x[i, j], with the rows of x flattened. Rows that
/// `rows` does not list are left unchanged. Columns must not overlap. Throws ShapeError unless there is one
/// column per value of a row and the number of rows matches; InputError if a row is out of range or listed
/// twice. If it throws, nothing was written.
void copy_to_columns(const Tensor& x, std::span<const HostColumn> columns, const HostRows& rows = {});
void copy_to_columns(const Tensor& x, std::initializer_list<HostColumn> columns, const HostRows& rows = {});
template <std::ranges::contiguous_range Columns>
requires std::convertible_to<std::ranges::range_reference_t<const Columns>, HostColumn>
void copy_to_columns(const Tensor& x, const Columns& columns, const HostRows& rows = {}) {
  const std::vector<HostColumn> list(columns.begin(), columns.end());
  copy_to_columns(x, std::span(list), rows);
}

}}  // namespace sar
