// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/npy_elements.hpp>
#include <sar/core/number_text.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

template <class Stored>
auto load(const std::byte* in) {
  if constexpr (std::same_as<Stored, bool>) {
    return static_cast<std::uint8_t>(*in != std::byte{0});  // any byte but 0 is true
  } else {
    Stored element;
    std::memcpy(&element, in, sizeof(Stored));
    if constexpr (std::same_as<Stored, HalfBits>)
      return half_to_float(element.bits);
    else
      return element;
  }
}

template <class T, class Value>
bool holds(Value value) noexcept {
  if constexpr (std::floating_point<T>)
    return true;
  else if constexpr (std::floating_point<Value>)
    return value >= static_cast<Value>(std::numeric_limits<T>::min()) &&
           value < std::ldexp(Value{1}, std::numeric_limits<T>::digits) && value == std::floor(value);
  else
    return std::in_range<T>(value);
}

}  // namespace

template <class T>
Index convert_elements(NpyType type, const std::byte* in, Index count, T* out) {
  Index held = count;
  with_npy_type(type, [&](auto element) {
    using Stored = decltype(element);
    for (Index i = 0; i < count; ++i) {
      const auto value = load<Stored>(in + i * static_cast<Index>(sizeof(Stored)));
      if (holds<T>(value)) {
        out[i] = static_cast<T>(value);
      } else {
        out[i] = T{};
        held = std::min(held, i);
      }
    }
  });
  return held;
}

std::string element_text(NpyType type, const std::byte* in) {
  std::string text;
  with_npy_type(type, [&](auto element) { text = exact_text(load<decltype(element)>(in)); });
  return text;
}

template <class T>
void throw_not_held(const std::string& place, const std::string& what, NpyType type,
                    const std::byte* element) {
  throw InputError(concat(place, ": ", what, " is ", element_text(type, element),
                          ", expected a whole number from ", exact_text(std::numeric_limits<T>::min()),
                          " to ", exact_text(std::numeric_limits<T>::max())));
}

void swap_bytes(NpyType type, std::span<std::byte> elements) {
  const auto bytes = static_cast<std::size_t>(element_bytes(type));
  const auto swap_all = [&]<class Word>(Word word) {
    for (std::size_t at = 0; at < elements.size(); at += sizeof(Word)) {
      std::memcpy(&word, &elements[at], sizeof(Word));
      if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
      if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
      if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
      std::memcpy(&elements[at], &word, sizeof(Word));
    }
  };
  if (bytes == 2) swap_all(std::uint16_t{});
  if (bytes == 4) swap_all(std::uint32_t{});
  if (bytes == 8) swap_all(std::uint64_t{});
}

#define SAR_INSTANTIATE(T)                                                  \
  template Index convert_elements<T>(NpyType, const std::byte*, Index, T*); \
  template void throw_not_held<T>(const std::string&, const std::string&, NpyType, const std::byte*);
SAR_INSTANTIATE(float)
SAR_INSTANTIATE(double)
SAR_INSTANTIATE(std::uint8_t)
SAR_INSTANTIATE(std::int32_t)
SAR_INSTANTIATE(std::int64_t)
#undef SAR_INSTANTIATE

}}  // namespace sar
