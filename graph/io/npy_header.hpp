/// The header of a .npy file as text: a Python dictionary with the keys descr, fortran_order and shape.
#pragma once

#include <sar/graph/io/npy_type.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sar::inline SAR_PRECISION {

struct NpyHeader {
  NpyType type = NpyType::float32;
  std::vector<Index> shape;
  bool fortran_order = false;
};

/// Where the dictionary and the elements begin.
struct NpyPreamble {
  Index text_begin = 0;
  Index data_begin = 0;
};

/// From the first 12 bytes of an array of `bytes` bytes (fewer when it is shorter). Throws InputError,
/// beginning with `path`, when it does not begin as a .npy file or ends before its elements.
NpyPreamble parse_npy_preamble(const unsigned char* head, Index bytes, const std::string& path);

/// Throws InputError, beginning with `path`, for text that is not such a dictionary, an unknown type, a
/// negative extent, or more elements than 63 bits can count in bytes.
NpyHeader parse_npy_header(std::string_view text, const std::string& path);

/// Magic, version 1.0, length and dictionary, padded so that the data begin at a multiple of 64 bytes.
std::string format_npy_header(NpyType type, std::span<const Index> shape);

}  // namespace sar
