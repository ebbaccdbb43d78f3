// SPDX-License-Identifier: MIT

// read() divides the elements into parallel windows of 1 MiB, one pread() each: straight into `out` if the
// elements have its type, otherwise into a buffer, from which they are converted.
//
// read_rows() sorts the positions by row if the rows are not sorted: O(n log n) time and 8 bytes for each
// of n rows. Parallel blocks of rows then read windows of at most 1 MiB (or one row). A window bridges
// gaps of up to 64 KiB between rows. In Fortran order, this is done for each column; the columns are read
// in parallel.
#include <sar/core/error.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/text.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <numeric>
#include <system_error>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// The beginning of a .npy file (numpy.lib.format):
//
//     6 bytes         \x93NUMPY
//     2 bytes         version: 1.0, 2.0 or 3.0
//     2 or 4 bytes    length of the dictionary, little-endian; 2 bytes in version 1.0
//     dictionary      a text that ends with blanks and a newline
//
// The parser reads the dictionary once, from left to right. Keys may come in any order.

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

std::vector<Index> shape_of_rows(Index rows, std::span<const Index> row_shape) {
  std::vector<Index> shape{rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  return shape;
}

std::string shape_to_string(std::span<const Index> shape) {
  std::string text = "(";
  for (const Index extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + (shape.size() == 1 ? ",)" : ")");
}

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
    order = consecutive(0, std::ssize(rows));
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

#define SAR_INSTANTIATE(T)                                                         \
  template void NpyFile::read<T>(Index, Index, std::span<T>) const;                \
  template void NpyFile::read_rows<T>(std::span<const Index>, std::span<T>) const; \
  template Index convert_elements<T>(NpyType, const std::byte*, Index, T*);        \
  template void throw_not_held<T>(const std::string&, const std::string&, NpyType, const std::byte*);
SAR_INSTANTIATE(float)
SAR_INSTANTIATE(double)
SAR_INSTANTIATE(std::uint8_t)
SAR_INSTANTIATE(std::int32_t)
SAR_INSTANTIATE(std::int64_t)
#undef SAR_INSTANTIATE
}}  // namespace sar
