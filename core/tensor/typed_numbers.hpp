// SPDX-License-Identifier: MIT

/// TypedNumbers and ConstTypedNumbers: numbers of one of several types in memory, as kernels write and read
/// them.
#pragma once

#include <sar/core/numbers.hpp>

#include <cstddef>
#include <type_traits>

namespace sar { inline namespace SAR_PRECISION {

/// The type of the numbers of rows in memory.
///
///     reals       `real`: parameters, losses and, without mixed precision, everything
///     bfloat16    2 bytes: activations and their gradients in mixed precision
///     exact_sums  sums of several stages and ranks that do not depend on their order
enum class NumberType { reals, bfloat16, exact_sums };

/// Returns the bytes of a number.
[[nodiscard]] constexpr Index bytes_of(NumberType type) noexcept {
  return type == NumberType::bfloat16 ? 2 : type == NumberType::exact_sums ? 16 : Index{sizeof(real)};
}

/// An address and a type; null: there are no numbers. It does not keep the memory alive.
///
/// @code
/// Tensor x = Tensor::full({2, 3}, 1);
/// const TypedNumbers second_row = TypedNumbers(x.data()).from(3);
/// second_row.reals()[0] = 5;
/// @endcode
template <class Memory>
class TypedNumbersIn {
  template <class T>
  using Of = std::conditional_t<std::is_const_v<Memory>, const T, T>;

 public:
  constexpr TypedNumbersIn() = default;
  constexpr TypedNumbersIn(std::nullptr_t) {}                   // NOLINT: converts
  constexpr TypedNumbersIn(Of<real>* reals) : first_(reals) {}  // NOLINT
  constexpr TypedNumbersIn(Of<Bfloat16>* rounded)
      : TypedNumbersIn(rounded, NumberType::bfloat16) {}                                          // NOLINT
  constexpr TypedNumbersIn(Of<ExactSum>* sums) : TypedNumbersIn(sums, NumberType::exact_sums) {}  // NOLINT
  constexpr TypedNumbersIn(Memory* first, NumberType type) : first_(first), type_(type) {}
  /// Numbers that can be written can be read.
  template <class Other>
  requires(std::is_const_v<Memory> && !std::is_const_v<Other>) constexpr TypedNumbersIn(
      const TypedNumbersIn<Other>& other)  // NOLINT: converts
      : first_(other.memory()), type_(other.type()) {}

  [[nodiscard]] constexpr bool defined() const noexcept { return first_ != nullptr; }
  [[nodiscard]] constexpr Memory* memory() const noexcept { return first_; }
  [[nodiscard]] constexpr NumberType type() const noexcept { return type_; }
  [[nodiscard]] constexpr bool is_bfloat16() const noexcept { return type_ == NumberType::bfloat16; }
  /// The numbers, or null if they are of another type.
  [[nodiscard]] Of<real>* reals() const noexcept { return as<Of<real>>(NumberType::reals); }
  [[nodiscard]] Of<Bfloat16>* bfloat16() const noexcept { return as<Of<Bfloat16>>(NumberType::bfloat16); }
  [[nodiscard]] Of<ExactSum>* exact_sums() const noexcept { return as<Of<ExactSum>>(NumberType::exact_sums); }
  /// The numbers from number i on; null stays null.
  [[nodiscard]] TypedNumbersIn from(Index i) const noexcept {
    using Bytes = Of<char>;
    return {first_ == nullptr ? nullptr : static_cast<Bytes*>(first_) + i * bytes_of(type_), type_};
  }

 private:
  template <class T>
  [[nodiscard]] T* as(NumberType type) const noexcept {
    return type_ == type ? static_cast<T*>(first_) : nullptr;
  }

  Memory* first_ = nullptr;
  NumberType type_ = NumberType::reals;
};
using TypedNumbers = TypedNumbersIn<void>;
using ConstTypedNumbers = TypedNumbersIn<const void>;

/// Calls use(pointer) with the pointer of the numbers' type, reals or bfloat16.
template <class Memory, class Use>
auto with_type(const TypedNumbersIn<Memory>& numbers, const Use& use) {
  return numbers.is_bfloat16() ? use(numbers.bfloat16()) : use(numbers.reals());
}

}}  // namespace sar
