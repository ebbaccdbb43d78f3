// SPDX-License-Identifier: MIT

/// TypedRows: rows of numbers in memory, in one of several types.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/tensor/typed_numbers.hpp>

#include <memory>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// A handle, as Tensor: copies share the memory, which is in the byte account.
///
/// @code
/// const TypedRows rows(Tensor::full({2, 3}, 1.5), NumberType::bfloat16);  // rounded
/// const Tensor values = rows.to_tensor();                                // widened: exact
/// @endcode
class TypedRows {
 public:
  TypedRows() = default;
  /// The rows of a tensor, without a copy.
  TypedRows(Tensor rows) : reals_(std::move(rows)), shape_(reals_.shape()) {}  // NOLINT: converts
  /// Uninitialized rows.
  TypedRows(const Shape& shape, NumberType type);
  /// The rows of a tensor in this type: rounded to nearest, ties to even, or exact.
  TypedRows(const Tensor& rows, NumberType type);

  [[nodiscard]] bool defined() const noexcept { return shape_.dims() > 0; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] NumberType type() const noexcept { return type_; }
  [[nodiscard]] bool is_real() const noexcept { return type_ == NumberType::reals; }
  [[nodiscard]] bool is_bfloat16() const noexcept { return type_ == NumberType::bfloat16; }
  [[nodiscard]] Index num_rows() const noexcept { return defined() ? shape_[0] : 0; }
  [[nodiscard]] Index row_size() const noexcept { return shape_.row_size(); }
  [[nodiscard]] Index size() const noexcept { return shape_.size(); }

  /// The memory of number i and of those behind it.
  [[nodiscard]] void* at(Index i) noexcept { return first() + i * bytes_of(type_); }
  [[nodiscard]] const void* at(Index i) const noexcept { return first() + i * bytes_of(type_); }
  /// The numbers as kernels write and read them, from row `first` on; null where the rows are undefined.
  [[nodiscard]] TypedNumbers numbers(Index first = 0) noexcept {
    return defined() ? TypedNumbers(at(first * row_size()), type_) : TypedNumbers();
  }
  [[nodiscard]] ConstTypedNumbers numbers(Index first = 0) const noexcept {
    return defined() ? ConstTypedNumbers(at(first * row_size()), type_) : ConstTypedNumbers();
  }
  /// The rows as a tensor; undefined unless they are of type reals.
  [[nodiscard]] Tensor& reals() noexcept { return reals_; }
  [[nodiscard]] const Tensor& reals() const noexcept { return reals_; }
  /// The numbers, or null if they are of another type.
  [[nodiscard]] Bfloat16* bfloat16() noexcept {
    return is_bfloat16() ? static_cast<Bfloat16*>(memory_.get()) + offset_ : nullptr;
  }
  [[nodiscard]] const Bfloat16* bfloat16() const noexcept {
    return is_bfloat16() ? static_cast<const Bfloat16*>(memory_.get()) + offset_ : nullptr;
  }
  [[nodiscard]] ExactSum* exact_sums() noexcept {
    return type_ == NumberType::exact_sums ? static_cast<ExactSum*>(memory_.get()) + offset_ : nullptr;
  }
  [[nodiscard]] const ExactSum* exact_sums() const noexcept {
    return type_ == NumberType::exact_sums ? static_cast<const ExactSum*>(memory_.get()) + offset_ : nullptr;
  }

  /// Returns true if this is the only handle to memory of the library.
  [[nodiscard]] bool unique() const noexcept {
    return type_ == NumberType::reals ? reals_.unique() : memory_.use_count() == 1;
  }
  /// Returns `rows` uninitialized rows of the same size and type.
  [[nodiscard]] TypedRows other(Index rows) const { return {shape_.with_rows(rows), type_}; }
  /// Return rows [begin, end), and all numbers in another shape, in this memory. Throw ShapeError as those of
  /// Tensor.
  [[nodiscard]] TypedRows slice_rows(Index begin, Index end) const;
  [[nodiscard]] TypedRows reshape(const Shape& shape) const;
  /// Returns a copy with its own memory.
  [[nodiscard]] TypedRows clone() const;
  void set_zero();
  /// Returns the rows in this type, reals or bfloat16: this memory if they are of it, otherwise a copy.
  [[nodiscard]] TypedRows as(NumberType type) const& {
    return type == type_ ? *this : TypedRows(to_tensor(), type);
  }
  /// The same of rows that are given up. Many reals that no other handle refers to are rounded in their
  /// memory, of which the rest is freed, where the allocator can: can_shrink().
  [[nodiscard]] TypedRows as(NumberType type) &&;
  /// Returns the rows in `real`: this memory if they are of type reals, otherwise a copy; exact sums are
  /// rounded.
  [[nodiscard]] Tensor to_tensor() const;
  // Functions of a Tensor read any rows.
  operator Tensor() const& { return to_tensor(); }                              // NOLINT
  operator Tensor() && { return is_real() ? std::move(reals_) : to_tensor(); }  // NOLINT

 private:
  [[nodiscard]] char* first() const noexcept {
    if (type_ == NumberType::reals)
      return const_cast<char*>(reinterpret_cast<const char*>(reals_.data()));  // NOLINT: by constness of at()
    return static_cast<char*>(memory_.get()) + offset_ * bytes_of(type_);
  }

  Tensor reals_;
  std::shared_ptr<void> memory_;  // of other types
  Index offset_ = 0;              // of the first number there
  Shape shape_;
  NumberType type_ = NumberType::reals;
};

/// to (+)= from, number by number, for rows of equal shapes: reals and bfloat16 in `real`, rounded once;
/// exact sums to reals in double precision, rounded once; reals and exact sums to exact sums. Throws
/// ShapeError if the shapes differ. Multithreaded.
void add_rows(const TypedRows& from, TypedRows& to, bool accumulate = true);

// Conversions of n numbers, single-threaded, for operations that take a few rows at a time.
void widen(const Bfloat16* from, Index n, real* to);
void narrow(const real* from, Index n, Bfloat16* to);

}}  // namespace sar
