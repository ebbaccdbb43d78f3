// SPDX-License-Identifier: MIT

/// Parses and formats the header of a .npy file: a Python dictionary with the keys descr, fortran_order,
/// shape.
#pragma once

#include <sar/core/files/npy_type.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

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
