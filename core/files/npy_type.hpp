// SPDX-License-Identifier: MIT

/// Element types and shapes of NumPy's arrays in files.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sar { inline namespace SAR_PRECISION {

/// The supported element types.
enum class NpyType {
  float16,
  float32,
  float64,
  boolean,
  uint8,
  uint16,
  uint32,
  uint64,
  int8,
  int16,
  int32,
  int64
};

/// The element type of sar::real.
inline constexpr NpyType npy_real = sizeof(real) == 8 ? NpyType::float64 : NpyType::float32;

[[nodiscard]] const char* to_string(NpyType type) noexcept;  ///< NumPy's name: "float16", "bool"
[[nodiscard]] Index element_bytes(NpyType type) noexcept;
[[nodiscard]] bool is_floating_point(NpyType type) noexcept;

/// Returns NumPy's type string of little-endian elements, as in a file's header: "<f2", "|b1".
[[nodiscard]] std::string npy_descr(NpyType type);

struct NpyDescr {
  NpyType type;
  bool big_endian;
};
/// Parses a NumPy type string; nullopt if the type is not supported.
[[nodiscard]] std::optional<NpyDescr> parse_npy_descr(std::string_view descr) noexcept;
/// Returns the type of NumPy's name, "float16"; nullopt if it is not supported.
[[nodiscard]] std::optional<NpyType> parse_npy_name(std::string_view name) noexcept;

/// The most dimensions of an array in a file, which is NumPy's limit.
inline constexpr std::size_t max_file_dims = 64;

/// Returns the number of elements. Throws InputError with a message that begins with `path` if there are more
/// than max_file_dims dimensions or the size in bytes exceeds 63 bits.
Index checked_num_elements(std::span<const Index> shape, NpyType type, const std::string& path);

/// Returns the shape as a Python tuple: "(2, 10556)".
std::string shape_to_string(std::span<const Index> shape);

}}  // namespace sar
