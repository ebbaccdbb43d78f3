// SPDX-License-Identifier: MIT

/// Columns of a host program: views of its arrays, and copies between them and the columns of a tensor.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Views of the arrays of a host program, in their own layout and in either precision.
//
// A column has one number per row with a fixed stride between rows. This covers arrays of structs, structs
// of arrays, and matrices with padded rows. If an array also contains ghost rows, a list selects rows
// (HostRows).

template <class T>
concept HostNumber = std::same_as < std::remove_const_t<T>,
float > || std::same_as<std::remove_const_t<T>, double>;

/// A borrowed column with one number per row: row i is values[i * stride]. `Void` is const void for a
/// read-only column and void for a writable one.
template <class Void>
class BasicHostColumn {
 public:
  /// A column of an array, vector or span of float or double. The last row may be shorter than the stride.
  /// Throws ShapeError unless stride >= 1.
  template <std::ranges::contiguous_range Range>
  requires HostNumber<std::ranges::range_value_t<Range>> &&
      std::convertible_to<decltype(std::ranges::data(std::declval<Range&>())), Void*>
      BasicHostColumn(Range&& values, Index stride = 1)  // NOLINT: converts by design
      : BasicHostColumn(std::ranges::data(values), std::ssize(values), stride) {}
  /// A column of the `length` numbers starting at `values`. Throws ShapeError unless stride >= 1.
  template <HostNumber T>
  requires std::convertible_to<T*, Void*> BasicHostColumn(T* values, Index length, Index stride)
      : values_(values), stride_(stride), holds_double_(sizeof(T) == sizeof(double)) {
    require<ShapeError>(stride >= 1, "a column of a host has the stride ", stride, ", expected 1 or more");
    num_rows_ = length > 0 ? (length - 1) / stride + 1 : 0;
  }
  /// Converts to a read-only column.
  operator BasicHostColumn<const void>() const noexcept {  // NOLINT: converts by design
    return {values_, num_rows_, stride_, holds_double_};
  }

  [[nodiscard]] Void* values() const noexcept { return values_; }
  [[nodiscard]] Index num_rows() const noexcept { return num_rows_; }
  [[nodiscard]] Index stride() const noexcept { return stride_; }
  [[nodiscard]] bool holds_double() const noexcept { return holds_double_; }

 private:
  template <class>
  friend class BasicHostColumn;
  BasicHostColumn(Void* values, Index num_rows, Index stride, bool holds_double) noexcept
      : values_(values), num_rows_(num_rows), stride_(stride), holds_double_(holds_double) {}

  Void* values_;
  Index num_rows_ = 0;
  Index stride_;
  bool holds_double_;
};

using HostColumn = BasicHostColumn<void>;
using ConstHostColumn = BasicHostColumn<const void>;

/// The selected rows of columns: all rows, or a list of row indices owned by the host, which must outlive
/// this object.
class HostRows {
 public:
  HostRows() = default;
  template <std::ranges::contiguous_range Range>
  requires std::same_as<std::ranges::range_value_t<Range>, std::int32_t> ||
      std::same_as<std::ranges::range_value_t<Range>, std::int64_t>
      HostRows(const Range& rows)  // NOLINT: converts by design
      : all_(false) {
    if constexpr (std::same_as<std::ranges::range_value_t<Range>, std::int32_t>)
      narrow_ = rows;
    else
      wide_ = rows;
  }

  /// Returns the number of selected rows; `of_all` if all rows are selected.
  [[nodiscard]] Index size(Index of_all) const noexcept {
    return all_ ? of_all : static_cast<Index>(narrow_.size() + wide_.size());
  }
  /// Calls body(row), where row(i) returns the index of the i-th selected row.
  template <class Body>
  void visit(const Body& body) const {
    if (all_)
      body([](Index i) { return i; });
    else if (!narrow_.empty())
      body([rows = narrow_.data()](Index i) { return Index{rows[i]}; });
    else
      body([rows = wide_.data()](Index i) { return rows[i]; });
  }
  [[nodiscard]] bool all() const noexcept { return all_; }

 private:
  bool all_ = true;
  std::span<const std::int32_t> narrow_;
  std::span<const std::int64_t> wide_;
};

/// The element type of a struct's member: double for double, double[3], double[3][3] and std::array<double,
/// 3>.
template <class Member>
struct HostMember {
  using Number = std::remove_all_extents_t<Member>;
};
template <class T, std::size_t n>
struct HostMember<std::array<T, n>> : HostMember<T> {};

/// Returns a column over one member of an array of structs, or over one component (row-major) of a member
/// with several:
///
///     host_column(particles, &Particle::mass), host_column(particles, &Particle::velocity, 2)
///
/// The result is a ConstHostColumn if the structs are const, and a HostColumn otherwise. Throws ShapeError if
/// the member has no such component.
template <std::ranges::contiguous_range Structs, class S, class Member>
auto host_column(Structs&& structs, Member S::*member, Index component = 0) {
  using Struct = std::remove_reference_t<std::ranges::range_reference_t<Structs>>;
  using Number = typename HostMember<Member>::Number;
  using T = std::conditional_t<std::is_const_v<Struct>, const Number, Number>;
  static_assert(HostNumber<T>, "the member must consist of float or double");
  static_assert(sizeof(Struct) % sizeof(T) == 0, "the structs must lie at a multiple of their member's size");
  constexpr Index components = sizeof(Member) / sizeof(T), stride = sizeof(Struct) / sizeof(T);
  require<ShapeError>(0 <= component && component < components, "host_column: component ", component,
                      " of a member with ", components, " numbers");
  const Index size = std::ssize(structs);
  T* const first =
      size == 0 ? nullptr : reinterpret_cast<T*>(&(*std::ranges::data(structs).*member)) + component;
  return BasicHostColumn<std::conditional_t<std::is_const_v<Struct>, const void, void>>(
      first, size == 0 ? 0 : (size - 1) * stride + 1, stride);
}

/// Returns the columns of a matrix in a host's array, x[i, j] = values[i * row_stride + j * column_stride].
/// Throws ShapeError for strides below 1 and for an array that is too short.
template <std::ranges::contiguous_range Range>
auto host_columns(Range&& values, Index rows, Index columns, Index row_stride, Index column_stride = 1) {
  using T = std::remove_reference_t<std::ranges::range_reference_t<Range>>;
  using Column = BasicHostColumn<std::conditional_t<std::is_const_v<T>, const void, void>>;
  require<ShapeError>(rows >= 0 && columns >= 1 && row_stride >= 1 && column_stride >= 1,
                      "host_columns: ", rows, " rows and ", columns, " columns with strides ", row_stride,
                      " and ", column_stride, ", expected one column and strides of 1 at least");
  const Index needed = rows == 0 ? 0 : (rows - 1) * row_stride + (columns - 1) * column_stride + 1;
  require<ShapeError>(std::ssize(values) >= needed, "host_columns: an array of ", std::ssize(values),
                      " numbers for ", rows, " rows and ", columns, " columns with strides ", row_stride,
                      " and ", column_stride, ", expected ", needed, " at least");
  std::vector<Column> list;
  for (Index j = 0; j < columns; ++j)
    list.emplace_back(rows == 0 ? nullptr : std::ranges::data(values) + j * column_stride,
                      rows == 0 ? 0 : (rows - 1) * row_stride + 1, row_stride);
  return list;
}

/// Returns the row indices of a box of cells in an array with ghost layers; the last extent varies fastest. A
/// cell is in the box if its index along each extent is in [begin, end). The interior of a field with one
/// ghost layer on every side is
///
///     box_rows({nz, ny, nx}, {1, 1, 1}, {nz - 1, ny - 1, nx - 1})
///
/// Throws ShapeError unless the lists are equally long and 0 <= begin <= end <= extent in each dimension.
Array<Index> box_rows(std::initializer_list<Index> extents, std::initializer_list<Index> begin,
                      std::initializer_list<Index> end);

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
