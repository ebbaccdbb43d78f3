// SPDX-License-Identifier: MIT

/// The element types of NumPy's arrays, and the header of a .npy file: a Python dictionary with the keys
/// descr, fortran_order, shape.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Element types and shapes of NumPy's arrays in files.

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

struct NpyHeader {
  NpyType type = NpyType::float32;
  std::vector<Index> shape;
  bool fortran_order = false;  ///< false, too, where both orders are the same
  bool big_endian = false;
};

/// The offsets of the dictionary and of the elements.
struct NpyPreamble {
  Index text_begin = 0;
  Index data_begin = 0;
};

/// Parses the first 12 bytes (or fewer, if the array is shorter) of an array of `bytes` bytes. Throws
/// InputError with a message that begins with `path` if it is not a .npy file or ends before its elements.
NpyPreamble parse_npy_preamble(const unsigned char* head, Index bytes, const std::string& path);

/// Parses the dictionary. Throws InputError with a message that begins with `path` for invalid text, an
/// unknown type, a negative extent, or a size in bytes of more than 63 bits.
NpyHeader parse_npy_header(std::string_view text, const std::string& path);

/// An array of this shape in Fortran order lies in its file column by column of the flattened rows; the
/// indices behind the first vary in reverse. Returns which column of the rows in C order is number `i` there.
Index column_of_file(std::span<const Index> shape, Index i);
/// The inverse of column_of_file().
Index place_of_column(std::span<const Index> shape, Index column);

/// Returns magic, version 1.0, length and dictionary, padded so that the data begin at a multiple of 64
/// bytes.
std::string format_npy_header(NpyType type, std::span<const Index> shape);

}}  // namespace sar
