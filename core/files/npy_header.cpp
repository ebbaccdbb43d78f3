// SPDX-License-Identifier: MIT

// The beginning of a .npy file (numpy.lib.format):
//
//     6 bytes         \x93NUMPY
//     2 bytes         version: 1.0, 2.0 or 3.0
//     2 or 4 bytes    length of the dictionary, little-endian; 2 bytes in version 1.0
//     dictionary      a text that ends with blanks and a newline
//
// The parser reads the dictionary once, from left to right. Keys may come in any order.
#include <sar/core/error.hpp>
#include <sar/core/files/npy_header.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// A parser of the dictionary, from left to right.
class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        const NpyDescr found = descr();
        header.type = found.type;
        header.big_endian = found.big_endian;
        has_descr = true;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        fail();
      }
      if (accept('}')) break;
      expect(',');
    }
    if (!has_descr || !has_order || !has_shape) fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const {
    throw InputError(concat(path_, ": the .npy header cannot be understood at byte ", at_,
                            ", expected a dictionary with descr, fortran_order and shape"));
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  std::string_view quoted() {
    skip_blanks();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail();
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail();
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }
  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail();
  }
  NpyDescr descr() {
    skip_blanks();
    constexpr auto known =
        "expected bool, or integers or floating-point numbers of at most 64 bits, as numpy.save(path, "
        "array.astype(numpy.float32)) writes them";
    require<InputError>(at_ < text_.size() && text_[at_] != '[', path_,
                        ": the array has a structured dtype, expected an array for each of its fields, such "
                        "as numpy.save(path, array['x'])");
    const std::string_view text = quoted();
    const std::optional<NpyDescr> found = parse_npy_descr(text);
    require<InputError>(found.has_value(), path_, ": the array has dtype '", text, "'",
                        text == "|O" ? " (Python objects)" : "", ", ", known);
    return *found;
  }
  std::vector<Index> tuple() {
    std::vector<Index> extents;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      Index extent = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) fail();
      at_ = end - text_.data();
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long integer of Python 2
      extents.push_back(extent);
      if (accept(')')) break;
      expect(',');
    }
    return extents;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace

NpyPreamble parse_npy_preamble(const unsigned char* head, Index bytes, const std::string& path) {
  require<InputError>(bytes >= 10, path, ": the file has ", bytes,
                      " bytes, expected a .npy file with a header of at least 10");
  require<InputError>(std::memcmp(head, "\x93NUMPY", 6) == 0, path,
                      ": the file does not begin with \\x93NUMPY, expected a .npy file");
  const int version = head[6];
  require<InputError>(version >= 1 && version <= 3 && head[7] == 0, path, ": .npy version ", version, ".",
                      static_cast<int>(head[7]), ", expected 1.0, 2.0 or 3.0");
  const Index text_begin = version == 1 ? 10 : 12;
  require<InputError>(text_begin <= bytes, path, ": the file has ", bytes,
                      " bytes, expected a .npy file with a header of at least ", text_begin);
  Index text_bytes = head[8] | head[9] << 8;
  if (version > 1) text_bytes |= Index{head[10]} << 16 | Index{head[11]} << 24;
  constexpr Index most = Index{1} << 20;
  require<InputError>(text_bytes <= most, path, ": the .npy header has ", text_bytes,
                      " bytes, expected at most ", most);
  require<InputError>(text_begin + text_bytes <= bytes, path, ": the file has ", bytes,
                      " bytes, expected a header of ", text_begin + text_bytes);
  return {text_begin, text_begin + text_bytes};
}

NpyHeader parse_npy_header(std::string_view text, const std::string& path) {
  NpyHeader header = Parser(text, path).parse();
  const auto extends = [](Index extent) { return extent != 1; };
  header.fortran_order = header.fortran_order && std::ranges::count_if(header.shape, extends) > 1;
  static_cast<void>(checked_num_elements(header.shape, header.type, path));
  return header;
}

Index column_of_file(std::span<const Index> shape, Index i) {
  Index column = 0;
  for (std::size_t dim = 1; dim < shape.size(); ++dim) {
    Index stride = 1;
    for (const Index extent : shape.subspan(dim + 1)) stride *= extent;
    column += i % shape[dim] * stride;
    i /= shape[dim];
  }
  return column;
}

Index place_of_column(std::span<const Index> shape, Index column) {
  Index place = 0;
  for (std::size_t dim = shape.size(); dim-- > 1; column /= shape[dim])
    place = place * shape[dim] + column % shape[dim];
  return place;
}

std::string format_npy_header(NpyType type, std::span<const Index> shape) {
  std::string text = concat("{'descr': '", npy_descr(type),
                            "', 'fortran_order': False, 'shape': ", shape_to_string(shape), ", }");
  constexpr std::size_t prefix = 10;  // magic, version, length
  text.append((64 - (prefix + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  const auto length = text.size();
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 0xff) +
         static_cast<char>(length >> 8) + text;
}

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
