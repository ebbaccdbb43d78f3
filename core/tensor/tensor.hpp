// SPDX-License-Identifier: MIT

/// Tensor: contiguous row-major `real` values with 1 to 4 dimensions.
///
/// A Tensor is a handle: copies share the memory, clone() copies it. The memory belongs to the library (and
/// is in the byte account, see memory.hpp) or is borrowed from the caller. The first dimension counts rows
/// (nodes, edges); each row is contiguous.
///
/// Room core/tensor: Tensors in memory, the arrays of a host program as tensors, and rows that are computed
/// when they are read.
#pragma once

#include <sar/config.hpp>

#include <array>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>

namespace sar { inline namespace SAR_PRECISION {

/// The extents of 1 to 4 dimensions. A Shape with 0 dimensions means "undefined".
///
/// @code
/// const Shape shape{2708, 16};
/// const Index numbers = shape.size();              // 2708 * 16
/// const Shape of_training = shape.with_rows(140);  // [140, 16]
/// @endcode
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Index> extents);
  explicit Shape(std::span<const Index> extents);

  [[nodiscard]] int dims() const noexcept { return dims_; }
  [[nodiscard]] Index operator[](int d) const { return extents_[static_cast<std::size_t>(d)]; }
  /// Returns the number of elements.
  [[nodiscard]] Index size() const noexcept { return dims_ == 0 ? 0 : extents_[0] * row_size(); }
  /// Returns the number of elements in one row: the product of all extents except the first.
  [[nodiscard]] Index row_size() const noexcept {
    Index product = 1;
    for (int d = 1; d < dims_; ++d) product *= extents_[static_cast<std::size_t>(d)];
    return product;
  }
  /// Returns the same shape with `rows` rows.
  [[nodiscard]] Shape with_rows(Index rows) const;
  [[nodiscard]] std::string to_string() const;  ///< for example "[2708, 16]"
  bool operator==(const Shape&) const = default;

 private:
  std::array<Index, 4> extents_{};
  int dims_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// The floating-point type that `real` is not: arrays of this type are converted.
using other_precision = std::conditional_t<std::is_same_v<real, float>, double, float>;

/// @code
/// std::vector<real> state(6, 1);
/// const Tensor x = Tensor::borrow(state, {2, 3});  // the vector's memory
/// Tensor y = x.clone();                            // memory of its own
/// y.row(1)[0] = 5;
/// y.copy_to(state);                                // and so x has it
/// @endcode
class Tensor {
 public:
  /// An undefined tensor: no shape and no memory. A tensor with zero rows is defined.
  Tensor() = default;
  /// Allocates a tensor with uninitialized values. Throws MemoryError.
  explicit Tensor(const Shape& shape);

  static Tensor zeros(const Shape& shape) { return full(shape, 0); }
  static Tensor full(const Shape& shape, real value);
  /// Returns a tensor with a copy of `values` in row-major order. Throws ShapeError unless there are
  /// shape.size() values.
  static Tensor from(const Shape& shape, std::span<const real> values);
  static Tensor from(const Shape& shape, std::initializer_list<real> values);
  /// Returns a tensor with a copy of `values`, converted to `real`.
  static Tensor from(const Shape& shape, std::span<const other_precision> values);
  /// Returns a tensor on the caller's memory, without a copy. The memory must outlive every handle and every
  /// tape that recorded the tensor. It is not in the byte account. Operations never write to borrowed memory;
  /// only values(), fill(), copy_from() and an optimizer (for its parameters) do.
  static Tensor borrow(real* data, const Shape& shape);
  /// Returns a read-only tensor on the caller's memory: the functions that write throw InputError. data() and
  /// row() of a non-const handle do not check this, so keep the handle const.
  static Tensor borrow(const real* data, const Shape& shape);
  /// Returns a tensor on memory that lives as long as `owner`, which the tensor and all its handles keep. It
  /// is borrowed memory otherwise: operations never write to it.
  static Tensor borrow(real* data, const Shape& shape, std::shared_ptr<void> owner);
  static Tensor borrow(const real* data, const Shape& shape, std::shared_ptr<void> owner);
  /// Returns a tensor on the memory of a vector, array or span of `real`; read-only if the elements are
  /// const. Throws ShapeError unless its length is shape.size().
  template <std::ranges::contiguous_range Range>
  requires std::same_as<std::ranges::range_value_t<Range>, real> &&
      (std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>)static Tensor
      borrow(Range&& values, const Shape& shape) {
    require_length(std::ranges::size(values), shape);
    return borrow(std::ranges::data(values), shape);
  }

  // Arrays of the other precision cannot be borrowed. Tensor::from(shape, values) copies and converts them;
  // copy_to() and copy_from() convert between an array and an existing tensor.
  static Tensor borrow(const other_precision*, const Shape&) = delete;  // call Tensor::from(shape, values)
  template <std::ranges::contiguous_range Range>
  requires std::same_as<std::ranges::range_value_t<Range>, other_precision>
  static Tensor borrow(Range&&, const Shape&) = delete;  // call Tensor::from(shape, values)

  [[nodiscard]] bool defined() const noexcept { return shape_.dims() > 0; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] Index size() const noexcept { return shape_.size(); }
  [[nodiscard]] Index num_rows() const noexcept { return defined() ? shape_[0] : 0; }
  [[nodiscard]] Index row_size() const noexcept { return shape_.row_size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(size()) * sizeof(real); }

  [[nodiscard]] real* data() noexcept { return data_; }
  [[nodiscard]] const real* data() const noexcept { return data_; }
  [[nodiscard]] real* row(Index i) noexcept { return data_ + i * row_size(); }
  [[nodiscard]] const real* row(Index i) const noexcept { return data_ + i * row_size(); }
  [[nodiscard]] std::span<real> values() {
    require_writable();
    return {data_, static_cast<std::size_t>(size())};
  }
  [[nodiscard]] std::span<const real> values() const noexcept {
    return {data_, static_cast<std::size_t>(size())};
  }
  /// Returns the value of a tensor with one element. Throws ShapeError for any other size.
  [[nodiscard]] real item() const;

  /// Returns rows [begin, end) as a tensor that shares this memory. Throws ShapeError if out of range.
  [[nodiscard]] Tensor slice_rows(Index begin, Index end) const;
  /// Returns this memory as a tensor of another shape. Throws ShapeError unless the sizes are equal.
  [[nodiscard]] Tensor reshape(const Shape& shape) const;
  /// Returns a copy with its own memory.
  [[nodiscard]] Tensor clone() const;
  /// Sets all elements to `value`.
  void fill(real value);
  /// Copies the values of `other`. Throws ShapeError unless the shapes are equal.
  void copy_from(const Tensor& other);
  // Copy from and to the caller's memory, converting between float and double where the types differ. They
  // throw ShapeError unless the number of values is size().
  void copy_from(std::span<const real> values);
  void copy_from(std::span<const other_precision> values);
  void copy_to(std::span<real> values) const;
  void copy_to(std::span<other_precision> values) const;

  /// Returns true if this is the only handle to memory of the library: no one else sees it overwritten.
  [[nodiscard]] bool unique() const noexcept { return !borrowed_ && storage_.use_count() == 1; }
  /// Returns true if the memory was borrowed as const.
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  /// Throws InputError if read_only().
  void require_writable() const;
  /// Saves the values in the open Transaction. To be called before values that outlive a call are
  /// overwritten.
  void save() const;

 private:
  friend class TypedRows;  // takes the memory over
  static void require_length(std::size_t length, const Shape& shape);

  std::shared_ptr<void> storage_;  // null when undefined, or borrowed without an owner
  real* data_ = nullptr;
  Shape shape_;
  bool borrowed_ = false;
  bool read_only_ = false;
};

}}  // namespace sar
