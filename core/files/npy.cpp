// SPDX-License-Identifier: MIT

// read() divides the elements into parallel windows of 1 MiB, one pread() each: straight into `out` if the
// elements have its type, otherwise into a buffer, from which they are converted.
//
// read_rows() sorts the positions by row if the rows are not sorted: O(n log n) time and 8 bytes for each
// of n rows. Parallel blocks of rows then read windows of at most 1 MiB (or one row). A window bridges
// gaps of up to 64 KiB between rows. In Fortran order, this is done for each column; the columns are read
// in parallel.
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/core/files/npy_header.hpp>
#include <sar/core/half.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/number_text.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

static_assert(std::endian::native == std::endian::little, "elements in memory are little-endian");

constexpr Index window_bytes = Index{1} << 20;  // maximum size of one read
constexpr Index gap_bytes = Index{1} << 16;     // smaller gaps between rows are read and discarded

/// Returns whether elements of `type` have the same representation in a little-endian file and as T in
/// memory.
template <class T>
bool same_layout(NpyType type) {
  bool same = false;
  with_npy_type(type, [&](auto element) { same = std::same_as<T, decltype(element)>; });
  return same;
}

void lower(std::atomic<Index>& smallest, Index value) {
  Index found = smallest.load();
  while (value < found && !smallest.compare_exchange_weak(found, value)) {
  }
}

}  // namespace

NpyFile::NpyFile(std::string path) : file_(std::move(path), "a .npy file"), path_(file_.path()) {
  open(0, file_.size());
}

NpyFile::NpyFile(std::string path, const NpySection& section)
    : file_(std::move(path), "a .npz file"), path_(concat(file_.path(), ": ", section.name)) {
  open(section.begin, section.bytes);
}

void NpyFile::open(Index begin, Index bytes) {
  unsigned char head[12] = {};
  file_.read(begin, head, std::min<Index>(bytes, 12));
  const NpyPreamble preamble = parse_npy_preamble(head, bytes, path_);
  data_begin_ = begin + preamble.data_begin;
  const Index data_bytes = bytes - preamble.data_begin;
  std::string text(preamble.data_begin - preamble.text_begin, ' ');
  file_.read(begin + preamble.text_begin, text.data(), static_cast<Index>(text.size()));

  NpyHeader header = parse_npy_header(text, path_);
  fortran_order_ = header.fortran_order;
  big_endian_ = header.big_endian;
  type_ = header.type;
  shape_ = std::move(header.shape);
  size_ = checked_num_elements(shape_, type_, path_);
  row_size_ = checked_num_elements(std::span(shape_).subspan(shape_.empty() ? 0 : 1), type_, path_);
  require<InputError>(data_bytes == size_ * element_bytes(type_), path_, ": the file has ", data_bytes,
                      " bytes of data, expected ", size_ * element_bytes(type_), " for shape ",
                      shape_to_string(shape_), " of ", to_string(type_));
}

void NpyFile::expect_dims(int dims) const {
  require<InputError>(static_cast<int>(shape_.size()) == dims, path(), ": shape is ", shape_to_string(shape_),
                      ", expected ", dims, dims == 1 ? " dimension" : " dimensions");
}

/// Reads bytes of whole elements at this offset of the data, and makes them little-endian.
void NpyFile::read_bytes(Index offset, std::byte* out, Index bytes) const {
  file_.read(data_begin_ + offset, out, bytes);
  if (big_endian_) swap_bytes(type_, {out, static_cast<std::size_t>(bytes)});
}

/// Names the element at this offset of the data by its indices.
template <class T>
void NpyFile::throw_not_held_at(Index offset) const {
  std::vector<std::byte> element(element_bytes(type_));
  read_bytes(offset, element.data(), std::ssize(element));
  Index position = offset / element_bytes(type_);
  std::vector<Index> indices(shape_.size());
  for (std::size_t i = 0; i < shape_.size(); ++i) {
    const std::size_t dim = fortran_order_ ? i : shape_.size() - 1 - i;  // the fastest first
    indices[dim] = position % shape_[dim];
    position /= shape_[dim];
  }
  const std::string at = indices.size() == 1 ? std::to_string(indices[0]) : shape_to_string(indices);
  throw_not_held<T>(path_, "element " + at, type_, element.data());
}

template <class T>
void NpyFile::read(Index begin, Index end, std::span<T> out) const {
  require<ShapeError>(
      0 <= begin && begin <= end && end <= size_ && static_cast<Index>(out.size()) == end - begin, path(),
      ": cannot read elements ", begin, " to ", end, " of ", size_, " into ", out.size());
  const Index bytes = element_bytes(type_);
  std::atomic<Index> not_held = size_;  // the first one
  parallel_for(end - begin, window_bytes / bytes, [&](Index first, Index last) {
    const Index offset = (begin + first) * bytes;
    if (same_layout<T>(type_))
      return read_bytes(offset, reinterpret_cast<std::byte*>(out.data() + first), (last - first) * bytes);
    std::vector<std::byte> window((last - first) * bytes);
    read_bytes(offset, window.data(), (last - first) * bytes);
    const Index held = convert_elements(type_, window.data(), last - first, out.data() + first);
    if (held < last - first) lower(not_held, begin + first + held);
  });
  if constexpr (std::integral<T>)
    if (not_held < size_) throw_not_held_at<T>(not_held * bytes);
}

/// Calls take(i, column, piece, offset) for all elements of rows[i], from several threads. A piece is the
/// whole row (column 0) of a file in C order, or one element of a file in Fortran order; `offset` is its
/// place in the data. Pieces that lie close together are read at once.
template <class Take>
void NpyFile::for_each_piece(std::span<const Index> rows, const Take& take) const {
  const auto count = static_cast<Index>(rows.size());
  if (count == 0) return;  // there may be very many columns
  for (const Index row : rows)
    require<ShapeError>(0 <= row && row < num_rows(), path(), ": cannot read row ", row, " of ", num_rows());

  Array<Index> order;  // permutation that sorts `rows`; empty if they are sorted
  if (!std::is_sorted(rows.begin(), rows.end())) {
    order.resize(rows.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::sort(order.begin(), order.end(), [&](Index a, Index b) { return rows[a] < rows[b]; });
  }
  const Index piece_bytes = element_bytes(type_) * (fortran_order_ ? 1 : row_size_);
  const auto position = [&](Index k) { return order.empty() ? k : order[k]; };

  const auto read_pieces = [&](Index column, Index first, Index last) {
    const Index column_begin =
        fortran_order_ ? place_of_column(shape_, column) * num_rows() * piece_bytes : 0;
    const auto begin = [&](Index k) { return column_begin + rows[position(k)] * piece_bytes; };
    std::vector<std::byte> window;
    for (Index k = first, next = first; k < last; k = next) {
      const Index window_begin = begin(k);
      Index window_end = window_begin + piece_bytes;
      for (next = k + 1; next < last; ++next) {
        const Index start = begin(next);
        if (start - window_end > gap_bytes ||
            start + piece_bytes - window_begin > std::max(window_bytes, piece_bytes))
          break;
        window_end = start + piece_bytes;
      }
      window.resize(window_end - window_begin);
      read_bytes(window_begin, window.data(), window_end - window_begin);
      for (Index i = k; i < next; ++i)
        take(position(i), column, window.data() + (begin(i) - window_begin), begin(i));
    }
  };
  if (!fortran_order_)
    return parallel_for(count, std::max<Index>(1, window_bytes / std::max<Index>(piece_bytes, 1)),
                        [&](Index first, Index last) { read_pieces(0, first, last); });
  parallel_for(row_size_, std::max<Index>(1, window_bytes / std::max<Index>(count * piece_bytes, 1)),
               [&](Index first, Index last) {
                 for (Index column = first; column < last; ++column) read_pieces(column, 0, count);
               });
}

template <class T>
void NpyFile::read_rows(std::span<const Index> rows, std::span<T> out) const {
  require<ShapeError>(static_cast<Index>(out.size()) == static_cast<Index>(rows.size()) * row_size_, path(),
                      ": cannot read ", rows.size(), " rows of ", row_size_, " elements into ", out.size());
  const Index elements = fortran_order_ ? 1 : row_size_;
  std::atomic<Index> not_held = size_ * element_bytes(type_);  // the first one's place in the data
  for_each_piece(rows, [&](Index i, Index column, const std::byte* piece, Index offset) {
    const Index held = convert_elements(type_, piece, elements, out.data() + i * row_size_ + column);
    if (held < elements) lower(not_held, offset + held * element_bytes(type_));
  });
  if constexpr (std::integral<T>)
    if (not_held < size_ * element_bytes(type_)) throw_not_held_at<T>(not_held);
}

void NpyFile::read_rows_raw(std::span<const Index> rows, std::span<std::byte> out) const {
  const Index bytes = element_bytes(type_);
  require<ShapeError>(static_cast<Index>(out.size()) == static_cast<Index>(rows.size()) * row_size_ * bytes,
                      path(), ": cannot read ", rows.size(), " rows of ", row_size_ * bytes, " bytes into ",
                      out.size());
  const Index piece_bytes = fortran_order_ ? bytes : row_size_ * bytes;
  for_each_piece(rows, [&](Index i, Index column, const std::byte* piece, Index /*offset*/) {
    std::copy_n(piece, piece_bytes, out.data() + (i * row_size_ + column) * bytes);
  });
}

void NpyFile::read_rows_raw(Index begin, Index end, std::span<std::byte> out) const {
  const Index row_bytes = row_size_ * element_bytes(type_);
  require<ShapeError>(0 <= begin && begin <= end && end <= num_rows() &&
                          static_cast<Index>(out.size()) == (end - begin) * row_bytes,
                      path(), ": cannot read rows ", begin, " to ", end, " of ", num_rows(), " into ",
                      out.size(), " bytes");
  if (!fortran_order_) {
    const Index window = window_bytes / element_bytes(type_) * element_bytes(type_);
    return parallel_for((end - begin) * row_bytes, window, [&](Index first, Index last) {
      read_bytes(begin * row_bytes + first, out.data() + first, last - first);
    });
  }
  constexpr Index chunk = Index{1} << 18;
  std::vector<Index> rows;
  for (Index first = begin; first < end; first += chunk) {
    rows.resize(std::min(chunk, end - first));
    std::iota(rows.begin(), rows.end(), first);
    read_rows_raw(rows, out.subspan((first - begin) * row_bytes, std::ssize(rows) * row_bytes));
  }
}

NpyWriter::NpyWriter(const std::string& path, std::span<const Index> shape, NpyType type)
    : path_(path), bytes_left_(checked_num_elements(shape, type, path) * element_bytes(type)), file_(path) {
  const std::string header = format_npy_header(type, shape);
  file_.write(header.data(), header.size());
}

void NpyWriter::write(std::span<const std::byte> elements) {
  require<ShapeError>(static_cast<Index>(elements.size()) <= bytes_left_, path_, ": cannot write ",
                      elements.size(), " bytes, expected at most ", bytes_left_, " more");
  bytes_left_ -= static_cast<Index>(elements.size());
  file_.write(elements.data(), elements.size());
}

void NpyWriter::commit(bool flushed) {
  require<ShapeError>(bytes_left_ == 0, path_, ": the shape has ", bytes_left_,
                      " more bytes than were written");
  file_.commit(flushed);
}

template <class T>
void write_npy(const std::string& path, std::span<const Index> shape, std::span<const T> values,
               NpyType type) {
  const Index size = checked_num_elements(shape, type, path);
  require<ShapeError>(size == static_cast<Index>(values.size()), path, ": shape ", shape_to_string(shape),
                      " needs ", size, " values, not ", values.size());
  NpyWriter file(path, shape, type);
  with_npy_type(type, [&](auto element) {
    using Stored = decltype(element);
    constexpr std::size_t chunk = std::size_t{1} << 16;
    std::vector<std::byte> bytes(std::min(chunk, values.size()) * sizeof(Stored));
    for (std::size_t begin = 0; begin < values.size(); begin += chunk) {
      const std::size_t count = std::min(chunk, values.size() - begin);
      for (std::size_t i = 0; i < count; ++i) {
        if constexpr (std::same_as<Stored, HalfBits>)
          element.bits = float_to_half(static_cast<double>(values[begin + i]));
        else
          element = static_cast<Stored>(values[begin + i]);
        std::memcpy(bytes.data() + i * sizeof(Stored), &element, sizeof(Stored));
      }
      file.write(std::span(bytes).first(count * sizeof(Stored)));
    }
  });
  file.commit();
}

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

#define SAR_INSTANTIATE(T)                                                                             \
  template void NpyFile::read<T>(Index, Index, std::span<T>) const;                                    \
  template void NpyFile::read_rows<T>(std::span<const Index>, std::span<T>) const;                     \
  template void write_npy<T>(const std::string&, std::span<const Index>, std::span<const T>, NpyType); \
  template Index convert_elements<T>(NpyType, const std::byte*, Index, T*);                            \
  template void throw_not_held<T>(const std::string&, const std::string&, NpyType, const std::byte*);
SAR_INSTANTIATE(float)
SAR_INSTANTIATE(double)
SAR_INSTANTIATE(std::uint8_t)
SAR_INSTANTIATE(std::int32_t)
SAR_INSTANTIATE(std::int64_t)
#undef SAR_INSTANTIATE
}}  // namespace sar
