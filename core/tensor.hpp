/// Tensor: contiguous row-major `real` values of 1 to 4 dimensions.
///
/// A Tensor is a handle: copies share the memory, clone() copies it. The memory is the library's (accounted,
/// see memory.hpp) or borrowed from the caller. The first dimension counts rows (nodes, edges); a row is
/// contiguous.
///
/// Room core: Tensors, and the kernels on their rows and elements, on threads of one process. It also has
/// random numbers, the account of memory, files, errors and the recording of timelines. It knows neither
/// gradients nor other ranks.
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

namespace sar::inline SAR_PRECISION {

/// Extents of 1 to 4 dimensions; no dimension at all means "undefined".
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Index> extents);
  explicit Shape(std::span<const Index> extents);

  [[nodiscard]] int dims() const noexcept { return dims_; }
  [[nodiscard]] Index operator[](int d) const { return extents_[static_cast<std::size_t>(d)]; }
  /// Number of elements.
  [[nodiscard]] Index size() const noexcept;
  /// Elements of one row: the product of all extents but the first.
  [[nodiscard]] Index row_size() const noexcept;
  /// The same shape with another number of rows.
  [[nodiscard]] Shape with_rows(Index rows) const;
  [[nodiscard]] std::string to_string() const;  ///< "[2708, 16]"
  bool operator==(const Shape&) const = default;

 private:
  std::array<Index, 4> extents_{};
  int dims_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// double where `real` is float, and the reverse: a host's arrays of this type are converted.
using other_precision = std::conditional_t<std::is_same_v<real, float>, double, float>;

class Tensor {
 public:
  /// Undefined: no shape and no memory. A tensor with zero rows is defined.
  Tensor() = default;
  /// Uninitialised values.
  explicit Tensor(const Shape& shape);

  static Tensor zeros(const Shape& shape);
  static Tensor full(const Shape& shape, real value);
  /// A copy of `values`. Throws ShapeError when their number is not shape.size().
  static Tensor from(const Shape& shape, std::span<const real> values);
  static Tensor from(const Shape& shape, std::initializer_list<real> values);
  /// The same, converted.
  static Tensor from(const Shape& shape, std::span<const other_precision> values);
  /// Uses the caller's memory without a copy. It must outlive every handle, and the tape of a pass that reads
  /// it. It is not in the byte account. Operations never write into it; only these do: values(), fill(),
  /// copy_from(), and an optimizer whose parameter it is.
  static Tensor borrow(real* data, const Shape& shape);
  /// For reading: the functions that write throw InputError. data() and row() of a handle that is not const
  /// do not check that, so let the handle be const.
  static Tensor borrow(const real* data, const Shape& shape);
  /// The memory of a vector, an array or a span of `real`. Throws ShapeError when its length is not
  /// shape.size(). For reading when the elements are const.
  template <std::ranges::contiguous_range Range>
  requires std::same_as<std::ranges::range_value_t<Range>, real> &&
      (std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>)static Tensor
      borrow(Range&& values, const Shape& shape) {
    require_length(std::ranges::size(values), shape);
    return borrow(std::ranges::data(values), shape);
  }

  // Memory of the other precision cannot be used as it lies. Tensor::from(shape, values) converts it,
  // copy_to() and copy_from() convert between an array and a tensor that is there.
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
  /// The value of a tensor with one element. Throws ShapeError otherwise.
  [[nodiscard]] real item() const;

  /// Rows [begin, end), sharing this tensor's memory. Throws ShapeError when out of range.
  [[nodiscard]] Tensor slice_rows(Index begin, Index end) const;
  /// The same memory under another shape of the same size. Throws ShapeError otherwise.
  [[nodiscard]] Tensor reshape(const Shape& shape) const;
  [[nodiscard]] Tensor clone() const;
  void fill(real value);
  /// Copies the values of a tensor of the same shape. Throws ShapeError otherwise.
  void copy_from(const Tensor& other);
  // From the caller's values and into the caller's memory, converted where the types differ. They throw
  // ShapeError when the number of values is not size().
  void copy_from(std::span<const real> values);
  void copy_from(std::span<const other_precision> values);
  void copy_to(std::span<real> values) const;
  void copy_to(std::span<other_precision> values) const;

  /// True when this handle is the only one to library-owned memory: it may be overwritten unseen.
  [[nodiscard]] bool unique() const noexcept { return storage_ != nullptr && storage_.use_count() == 1; }
  /// True when the memory was borrowed for reading.
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  /// Throws InputError when read_only().
  void require_writable() const;

 private:
  static void require_length(std::size_t length, const Shape& shape);

  std::shared_ptr<void> storage_;  // null when borrowed or undefined
  real* data_ = nullptr;
  Shape shape_;
  bool read_only_ = false;
};

}  // namespace sar
