/// NumPy's .npy files (numpy.lib.format, versions 1.0 to 3.0): reading parts of an array, writing a whole
/// one.
///
/// Errors are InputError: one sentence with the file, what was found and what was expected. Nothing here is
/// collective.
///
/// Room graph/io: Files of arrays, read and written by one process. Nothing here is collective.
#pragma once

#include <sar/core/file.hpp>
#include <sar/graph/io/npy_type.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The accepted orders of the elements in the file: the last index varies fastest (C), or the first one
/// (Fortran).
enum class NpyOrder { c, c_or_fortran };

/// An array inside a file, as in a .npz archive.
struct NpySection {
  std::string name;  ///< for messages, behind the path
  Index begin = 0;   ///< the section lies in the file
  Index bytes = 0;
};

/// An open array. The constructor checks the header and the file's size; elements are read on demand, so that
/// a rank reads only the part of the file that it needs. Reading is safe from several threads.
class NpyFile {
 public:
  /// Throws InputError when the file cannot be opened, is not a .npy file, is in an order that is not
  /// accepted, holds another type of element, or when its size is not the one that the header promises.
  explicit NpyFile(std::string path, NpyOrder accepted = NpyOrder::c);
  NpyFile(std::string path, const NpySection& section, NpyOrder accepted = NpyOrder::c);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] NpyType type() const noexcept { return type_; }
  [[nodiscard]] const std::vector<Index>& shape() const noexcept { return shape_; }
  [[nodiscard]] Index size() const noexcept { return size_; }  ///< number of elements
  [[nodiscard]] Index num_rows() const noexcept { return shape_.empty() ? 1 : shape_[0]; }
  [[nodiscard]] Index row_size() const noexcept { return row_size_; }  ///< elements of one row

  [[nodiscard]] bool fortran_order() const noexcept { return fortran_order_; }

  /// Throws InputError unless the array has `dims` dimensions and one of the types.
  void expect(std::initializer_list<NpyType> types, int dims) const;

  /// Elements [begin, end) in the order of the file, converted to T: float or double from every type;
  /// std::int64_t and std::int32_t from the integers they can hold; std::uint8_t from uint8 and bool (as 0 or
  /// 1). Throws InputError for another type or when reading fails, ShapeError for a range outside the array
  /// or another length of `out`.
  template <class T>
  void read(Index begin, Index end, std::span<T> out) const;

  /// The listed rows, in the order of the list (any order, repetitions allowed), converted as by read().
  /// `out` holds rows.size() * row_size() elements. Rows that lie close together are read at once. The array
  /// is in C order.
  template <class T>
  void read_rows(std::span<const Index> rows, std::span<T> out) const;

  /// Elements [begin, end) as they lie in the file, (end - begin) * element_bytes(type()) bytes.
  void read_raw(Index begin, Index end, std::span<std::byte> out) const;
  /// The same of rows, as read_rows().
  void read_rows_raw(std::span<const Index> rows, std::span<std::byte> out) const;

 private:
  void open(Index begin, Index bytes, NpyOrder accepted);
  template <class Take>
  void for_each_row(std::span<const Index> rows, const Take& take) const;

  InputFile file_;
  std::string path_;
  NpyType type_ = NpyType::float32;
  std::vector<Index> shape_;
  bool fortran_order_ = false;
  Index size_ = 0;
  Index row_size_ = 0;
  Index data_begin_ = 0;
};

/// An array that is written chunk by chunk, into a temporary file beside `path`. commit() flushes it to the
/// disk and renames it, so that `path` is never seen half written. Errors are InputError.
class NpyWriter {
 public:
  NpyWriter(const std::string& path, std::span<const Index> shape, NpyType type);
  /// The next elements as they shall lie in the file, in C order.
  void write(std::span<const std::byte> elements);
  /// Throws ShapeError unless the chunks fill the shape. `flushed` as TemporaryFile.
  void commit(bool flushed = true);

 private:
  std::string path_;
  Index bytes_left_;
  TemporaryFile file_;
};

/// Writes `values`, converted to `type`, as an array of `shape` in C order, in the way of NpyWriter. T:
/// float, double, std::uint8_t, std::int32_t, std::int64_t. Conversion to float16 rounds to nearest, ties to
/// even; conversion to bool gives 1 for all but 0. Throws InputError when writing fails, and ShapeError when
/// the number of values is not that of the shape.
template <class T>
void write_npy(const std::string& path, std::span<const Index> shape, std::span<const T> values,
               NpyType type);

/// Converts `count` elements of `type` to T. NpyFile::read says which T go with which types; this is not
/// checked.
template <class T>
void convert_elements(NpyType type, const std::byte* in, Index count, T* out);

}  // namespace sar
