/// Where a host program keeps its numbers: arrays of its own layout, in either precision.
///
/// A column is one number per row, at a fixed distance from row to row. That covers arrays of structs,
/// structs of arrays, and matrices with padded rows. Where an array also has ghosts, a list says which rows
/// are meant.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

template <class T>
concept HostNumber = std::same_as < std::remove_const_t<T>,
float > || std::same_as<std::remove_const_t<T>, double>;

/// One number per row: that of row i is values[i * stride]. The memory stays the host's. `Void` is const void
/// in a column for reading, and void in one for reading and writing.
template <class Void>
class BasicHostColumn {
 public:
  /// Of an array, a vector or a span of float or double, whose last numbers are the last row and its padding.
  /// Throws ShapeError unless stride >= 1.
  template <std::ranges::contiguous_range Range>
  requires HostNumber<std::ranges::range_value_t<Range>> &&
      std::convertible_to<decltype(std::ranges::data(std::declval<Range&>())), Void*>
      BasicHostColumn(Range&& values, Index stride = 1)  // NOLINT: converts by design
      : BasicHostColumn(std::ranges::data(values), std::ssize(values), stride) {}
  /// The same, of `length` numbers from `values` on.
  template <HostNumber T>
  requires std::convertible_to<T*, Void*> BasicHostColumn(T* values, Index length, Index stride)
      : values_(values), stride_(stride), holds_double_(sizeof(T) == sizeof(double)) {
    require<ShapeError>(stride >= 1, "a column of a host has the stride ", stride, ", expected 1 or more");
    num_rows_ = length > 0 ? (length - 1) / stride + 1 : 0;
  }
  /// For reading.
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

/// The rows that are meant, as positions in columns: all of them, or those of a list of the host's, which
/// must live as long as this.
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

  /// The number of rows of a list, or `of_all` without one.
  [[nodiscard]] Index size(Index of_all) const noexcept {
    return all_ ? of_all : static_cast<Index>(narrow_.size() + wide_.size());
  }
  /// body(row), where row(i) is the position of row i.
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

/// The number type of a struct's member: double for double, double[3], double[3][3] and std::array<double,
/// 3>.
template <class Member>
struct HostMember {
  using Number = std::remove_all_extents_t<Member>;
};
template <class T, std::size_t n>
struct HostMember<std::array<T, n>> : HostMember<T> {};

/// A member of an array of structs, or one number of a member that has several (row-major):
///
///     host_column(particles, &Particle::mass), host_column(particles, &Particle::velocity, 2)
///
/// The result is a ConstHostColumn when the structs are const, and a HostColumn otherwise. Throws ShapeError
/// when the member has no such component.
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

/// The columns of a matrix in a host's array, x[i, j] = values[i * row_stride + j * column_stride]. Throws
/// ShapeError for strides below 1, and when the array is too short.
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

/// The rows of a box in an array of cells with ghost layers, the last extent fastest: those cells whose
/// numbers along each extent are in [begin, end). The interior of a field with a ghost layer on every side is
///
///     box_rows({nz, ny, nx}, {1, 1, 1}, {nz - 1, ny - 1, nx - 1})
///
/// Throws ShapeError unless 0 <= begin <= end <= extent in each of equally many extents.
Array<Index> box_rows(std::initializer_list<Index> extents, std::initializer_list<Index> begin,
                      std::initializer_list<Index> end);

}  // namespace sar
