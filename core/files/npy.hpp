// SPDX-License-Identifier: MIT

/// NumPy's .npy files (numpy.lib.format, versions 1.0 to 3.0): reads parts of an array in either order and
/// byte order, writes whole arrays.
///
/// Errors are InputError with the file, the value found and the value expected. Everything here is local.
///
/// Room core/files: Files of arrays (npy, safetensors), read and written by one process. Nothing here is
/// collective.
#pragma once

#include <sar/config.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/numbers.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// The element types of NumPy's arrays, and the header of a .npy file: a Python dictionary with the keys
// descr, fortran_order, shape.

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

/// Returns the shape of `rows` rows: rows, then row_shape.
std::vector<Index> shape_of_rows(Index rows, std::span<const Index> row_shape);

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

// Elements of NumPy's types in memory: their conversion, their text, their byte order.

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

/// An array inside a larger file, as in a .npz archive.
struct NpySection {
  std::string name;  ///< appended to the path in messages
  Index begin = 0;   ///< offset of the first byte; the section must lie within the file
  Index bytes = 0;
};

/// An open array. The constructor checks the header and the file's size. Elements are read on demand, so that
/// a rank reads only the part that it needs. Thread-safe.
class NpyFile {
 public:
  /// Throws InputError if the file cannot be opened, is not a .npy file, has an unknown element type, or if
  /// its size does not match the header.
  explicit NpyFile(std::string path);
  NpyFile(std::string path, const NpySection& section);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] NpyType type() const noexcept { return type_; }
  [[nodiscard]] const std::vector<Index>& shape() const noexcept { return shape_; }
  [[nodiscard]] Index size() const noexcept { return size_; }  ///< number of elements
  [[nodiscard]] Index num_rows() const noexcept { return shape_.empty() ? 1 : shape_[0]; }
  [[nodiscard]] Index row_size() const noexcept { return row_size_; }  ///< elements per row

  /// Whether the file has the array column by column (the first index varies fastest) instead of row by row.
  [[nodiscard]] bool fortran_order() const noexcept { return fortran_order_; }

  /// Throws InputError unless the array has `dims` dimensions.
  void expect_dims(int dims) const;

  /// Reads elements [begin, end) in file order, converted to T: float, double, std::uint8_t, std::int32_t or
  /// std::int64_t. Throws InputError for read errors and for an element that T cannot hold (an integer out of
  /// range; for an integer T a fraction, an infinite number or NaN), ShapeError for an invalid range or a
  /// wrong length of `out`.
  template <class T>
  void read(Index begin, Index end, std::span<T> out) const;

  /// Reads the listed rows in the order of the list (any order, repetitions allowed), converted as by read().
  /// `out` has rows.size() * row_size() elements, in C order whatever the order of the file. Rows that lie
  /// close together are read at once.
  template <class T>
  void read_rows(std::span<const Index> rows, std::span<T> out) const;

  /// Reads the listed rows without conversion; otherwise as read_rows().
  void read_rows_raw(std::span<const Index> rows, std::span<std::byte> out) const;
  /// Reads rows [begin, end) without conversion, in C order.
  void read_rows_raw(Index begin, Index end, std::span<std::byte> out) const;

 private:
  void open(Index begin, Index bytes);
  void read_bytes(Index offset, std::byte* out, Index bytes) const;
  template <class Take>
  void for_each_piece(std::span<const Index> rows, const Take& take) const;
  template <class T>
  [[noreturn]] void throw_not_held_at(Index offset) const;

  InputFile file_;
  std::string path_;
  NpyType type_ = NpyType::float32;
  std::vector<Index> shape_;
  bool fortran_order_ = false;
  bool big_endian_ = false;
  Index size_ = 0;
  Index row_size_ = 0;
  Index data_begin_ = 0;
};

/// Writes an array chunk by chunk into a temporary file beside `path`. commit() flushes and renames it, so
/// that `path` is never half written. Throws InputError on errors.
class NpyWriter {
 public:
  NpyWriter(const std::string& path, std::span<const Index> shape, NpyType type);
  /// Appends elements in C order, as they are stored in the file.
  void write(std::span<const std::byte> elements);
  /// Completes the file. `flushed` as in TemporaryFile. Throws ShapeError unless the chunks fill the shape.
  void commit(bool flushed = true);

 private:
  std::string path_;
  Index bytes_left_;
  TemporaryFile file_;
};
}}  // namespace sar
