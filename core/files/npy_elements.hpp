// SPDX-License-Identifier: MIT

/// Elements of NumPy's types in memory: their conversion, their text, their byte order.
#pragma once

#include <sar/core/files/npy_type.hpp>
#include <sar/core/half.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// A float16 as it is stored.
struct HalfBits {
  std::uint16_t bits = 0;
};

/// Calls use(element) with a value of the C++ type of the elements.
template <class Use>
void with_npy_type(NpyType type, const Use& use) {
  switch (type) {
    case NpyType::float16:
      return use(HalfBits{});
    case NpyType::float32:
      return use(float{});
    case NpyType::float64:
      return use(double{});
    case NpyType::boolean:
      return use(bool{});
    case NpyType::uint8:
      return use(std::uint8_t{});
    case NpyType::uint16:
      return use(std::uint16_t{});
    case NpyType::uint32:
      return use(std::uint32_t{});
    case NpyType::uint64:
      return use(std::uint64_t{});
    case NpyType::int8:
      return use(std::int8_t{});
    case NpyType::int16:
      return use(std::int16_t{});
    case NpyType::int32:
      return use(std::int32_t{});
    case NpyType::int64:
      return use(std::int64_t{});
  }
}

/// Converts `count` elements of `type` to T: float, double, std::uint8_t, std::int32_t or std::int64_t.
/// Returns the position of the first element that T cannot hold, or `count`: an integer out of range, or for
/// an integer T a number with a fraction, infinite or NaN. float and double take every element, rounded.
template <class T>
Index convert_elements(NpyType type, const std::byte* in, Index count, T* out);

/// Returns the shortest text of an element that identifies it.
[[nodiscard]] std::string element_text(NpyType type, const std::byte* element);

/// Throws the InputError "PLACE: WHAT is VALUE, expected a whole number from MIN to MAX" for an element that
/// T cannot hold.
template <class T>
[[noreturn]] void throw_not_held(const std::string& place, const std::string& what, NpyType type,
                                 const std::byte* element);

/// Reverses the bytes of each element: from big-endian to little-endian.
void swap_bytes(NpyType type, std::span<std::byte> elements);

}}  // namespace sar
