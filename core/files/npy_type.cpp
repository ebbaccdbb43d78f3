// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/npy_type.hpp>

#include <array>

namespace sar { inline namespace SAR_PRECISION {
namespace {

struct TypeCode {
  const char* descr;
  const char* name;
  Index bytes;
};

/// In the order of NpyType.
constexpr std::array<TypeCode, 12> type_codes{{{"<f2", "float16", 2},
                                               {"<f4", "float32", 4},
                                               {"<f8", "float64", 8},
                                               {"|b1", "bool", 1},
                                               {"|u1", "uint8", 1},
                                               {"<u2", "uint16", 2},
                                               {"<u4", "uint32", 4},
                                               {"<u8", "uint64", 8},
                                               {"|i1", "int8", 1},
                                               {"<i2", "int16", 2},
                                               {"<i4", "int32", 4},
                                               {"<i8", "int64", 8}}};

constexpr const TypeCode& code_of(NpyType type) noexcept {
  return type_codes[static_cast<unsigned>(type)];
}

}  // namespace

const char* to_string(NpyType type) noexcept {
  return code_of(type).name;
}
Index element_bytes(NpyType type) noexcept {
  return code_of(type).bytes;
}
bool is_floating_point(NpyType type) noexcept {
  return type <= NpyType::float64;
}

std::string npy_descr(NpyType type) {
  return code_of(type).descr;
}

std::optional<NpyDescr> parse_npy_descr(std::string_view descr) noexcept {
  if (descr.empty()) return std::nullopt;
  for (unsigned i = 0; i < type_codes.size(); ++i) {
    const std::string_view known = type_codes[i].descr;
    if (descr.substr(1) != known.substr(1)) continue;
    const bool big_endian = descr[0] == '>';
    // single-byte types have no byte order, but some programs write one
    if (descr[0] == known[0] || big_endian || (descr[0] == '<' && known[0] == '|'))
      return NpyDescr{static_cast<NpyType>(i), big_endian && known[0] != '|'};
  }
  return std::nullopt;
}

std::optional<NpyType> parse_npy_name(std::string_view name) noexcept {
  for (unsigned i = 0; i < type_codes.size(); ++i)
    if (name == type_codes[i].name) return static_cast<NpyType>(i);
  return std::nullopt;
}

Index checked_num_elements(std::span<const Index> shape, NpyType type, const std::string& path) {
  require<InputError>(shape.size() <= max_file_dims, path, ": the array has ", shape.size(),
                      " dimensions, expected at most ", max_file_dims);
  Index bytes = element_bytes(type);
  for (const Index extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      throw InputError(concat(path, ": shape ", shape_to_string(shape), " of ", to_string(type),
                              " has more bytes than a file can have, expected less than 2^63"));
  return bytes / element_bytes(type);
}

std::string shape_to_string(std::span<const Index> shape) {
  std::string text = "(";
  for (const Index extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + (shape.size() == 1 ? ",)" : ")");
}

}}  // namespace sar
