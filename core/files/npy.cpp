#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/core/files/npy_header.hpp>
#include <sar/core/half.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace sar { inline namespace SAR_PRECISION {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements of a .npy file are used as they lie in the file");

constexpr Index window_bytes = Index{1} << 20;  // maximum size of one read
constexpr Index gap_bytes = Index{1} << 16;  // smaller gaps between rows are read and discarded

/// Calls use(element) with a value of the C++ type of the elements; std::uint16_t for float16.
template <class Use>
void with_type(NpyType type, const Use& use) {
  switch (type) {
    case NpyType::float16:
      return use(std::uint16_t{});
    case NpyType::float32:
      return use(float{});
    case NpyType::float64:
      return use(double{});
    case NpyType::boolean:
      return use(bool{});
    case NpyType::uint8:
      return use(std::uint8_t{});
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

template <class T>
bool readable_as(NpyType type) {
  if constexpr (std::floating_point<T>) return true;
  if (type == NpyType::uint8 || type == NpyType::boolean) return true;
  if constexpr (std::same_as<T, std::uint8_t>) return false;
  return type == NpyType::int8 || type == NpyType::int16 || type == NpyType::int32 ||
         (type == NpyType::int64 && std::same_as<T, std::int64_t>);
}

template <class T>
void require_readable_as(NpyType type, const std::string& path) {
  require<InputError>(readable_as<T>(type), path, ": dtype is ", to_string(type),
                      ", which cannot be read as ",
                      std::floating_point<T> ? "a floating-point number" : "an integer of this width");
}

/// Returns whether elements of `type` have the same representation in the file and as T in memory.
template <class T>
bool same_layout(NpyType type) {
  if (type == NpyType::float16 || type == NpyType::boolean) return false;
  bool same = false;
  with_type(type, [&](auto element) { same = std::same_as<T, decltype(element)>; });
  return same;
}

}  // namespace

template <class T>
void convert_elements(NpyType type, const std::byte* in, Index count, T* out) {
  with_type(type, [&](auto element) {
    using Stored = decltype(element);
    for (Index i = 0; i < count; ++i) {
      if constexpr (std::same_as<Stored, bool>) {
        out[i] = static_cast<T>(in[i] != std::byte{0});  // any byte but 0 is true
      } else {
        std::memcpy(&element, in + i * static_cast<Index>(sizeof(Stored)), sizeof(Stored));
        if constexpr (std::same_as<Stored, std::uint16_t>)
          out[i] = static_cast<T>(half_to_float(element));
        else
          out[i] = static_cast<T>(element);
      }
    }
  });
}

NpyFile::NpyFile(std::string path, NpyOrder accepted)
    : file_(std::move(path), "a .npy file"), path_(file_.path()) {
  open(0, file_.size(), accepted);
}

NpyFile::NpyFile(std::string path, const NpySection& section, NpyOrder accepted)
    : file_(std::move(path), "a .npz file"), path_(concat(file_.path(), ": ", section.name)) {
  open(section.begin, section.bytes, accepted);
}

void NpyFile::open(Index begin, Index bytes, NpyOrder accepted) {
  unsigned char head[12] = {};
  file_.read(begin, head, std::min<Index>(bytes, 12));
  const NpyPreamble preamble = parse_npy_preamble(head, bytes, path_);
  data_begin_ = begin + preamble.data_begin;
  const Index data_bytes = bytes - preamble.data_begin;
  std::string text(preamble.data_begin - preamble.text_begin, ' ');
  file_.read(begin + preamble.text_begin, text.data(), static_cast<Index>(text.size()));

  NpyHeader header = parse_npy_header(text, path_);
  require<InputError>(!header.fortran_order || accepted == NpyOrder::c_or_fortran, path_,
                      ": the array is in Fortran order, expected C order");
  fortran_order_ = header.fortran_order;
  type_ = header.type;
  shape_ = std::move(header.shape);
  size_ = checked_num_elements(shape_, type_, path_);
  row_size_ = checked_num_elements(std::span(shape_).subspan(shape_.empty() ? 0 : 1), type_, path_);
  require<InputError>(data_bytes == size_ * element_bytes(type_), path_, ": the file has ", data_bytes,
                      " bytes of data, expected ", size_ * element_bytes(type_), " for shape ",
                      shape_to_string(shape_), " of ", to_string(type_));
}

void NpyFile::expect(std::initializer_list<NpyType> types, int dims) const {
  std::string expected;
  bool found = false;
  for (const NpyType* type = types.begin(); type != types.end(); ++type) {
    expected += (expected.empty()          ? ""
                 : type + 1 == types.end() ? " or "
                                           : ", ") +
                std::string(to_string(*type));
    found = found || *type == type_;
  }
  require<InputError>(found, path(), ": dtype is ", to_string(type_), ", expected ", expected);
  require<InputError>(static_cast<int>(shape_.size()) == dims, path(), ": shape is ", shape_to_string(shape_),
                      ", expected ", dims, dims == 1 ? " dimension" : " dimensions");
}

template <class T>
void NpyFile::read(Index begin, Index end, std::span<T> out) const {
  require_readable_as<T>(type_, path());
  require<ShapeError>(
      0 <= begin && begin <= end && end <= size_ && static_cast<Index>(out.size()) == end - begin, path(),
      ": cannot read elements ", begin, " to ", end, " of ", size_, " into ", out.size());
  const Index bytes = element_bytes(type_);
  parallel_for(end - begin, window_bytes / bytes, [&](Index first, Index last) {
    const Index offset = data_begin_ + (begin + first) * bytes;
    if (same_layout<T>(type_)) return file_.read(offset, out.data() + first, (last - first) * bytes);
    std::vector<std::byte> window((last - first) * bytes);
    file_.read(offset, window.data(), (last - first) * bytes);
    convert_elements(type_, window.data(), last - first, out.data() + first);
  });
}

void NpyFile::read_raw(Index begin, Index end, std::span<std::byte> out) const {
  const Index bytes = element_bytes(type_);
  require<ShapeError>(
      0 <= begin && begin <= end && end <= size_ && static_cast<Index>(out.size()) == (end - begin) * bytes,
      path(), ": cannot read elements ", begin, " to ", end, " of ", size_, " into ", out.size(), " bytes");
  parallel_for((end - begin) * bytes, window_bytes, [&](Index first, Index last) {
    file_.read(data_begin_ + begin * bytes + first, out.data() + first, last - first);
  });
}

/// Calls take(i, bytes) with the bytes of row rows[i], from several threads. Rows that lie close together are
/// read at once.
template <class Take>
void NpyFile::for_each_row(std::span<const Index> rows, const Take& take) const {
  const auto count = static_cast<Index>(rows.size());
  require<ShapeError>(!fortran_order_, path(), ": rows of an array in Fortran order cannot be read");
  for (const Index row : rows)
    require<ShapeError>(0 <= row && row < num_rows(), path(), ": cannot read row ", row, " of ", num_rows());

  Array<Index> order;  // permutation that sorts `rows`; empty if they are sorted
  if (!std::is_sorted(rows.begin(), rows.end())) {
    order.resize(rows.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::sort(order.begin(), order.end(), [&](Index a, Index b) { return rows[a] < rows[b]; });
  }
  const Index row_bytes = row_size_ * element_bytes(type_);
  const auto position = [&](Index k) { return order.empty() ? k : order[k]; };
  const auto row_begin = [&](Index k) { return rows[position(k)] * row_bytes; };

  parallel_for(count, std::max<Index>(1, window_bytes / std::max<Index>(row_bytes, 1)),
               [&](Index first, Index last) {
                 std::vector<std::byte> window;
                 for (Index k = first, next = first; k < last; k = next) {
                   const Index window_begin = row_begin(k);
                   Index window_end = window_begin + row_bytes;
                   for (next = k + 1; next < last; ++next) {
                     const Index start = row_begin(next);
                     if (start - window_end > gap_bytes ||
                         start + row_bytes - window_begin > std::max(window_bytes, row_bytes))
                       break;
                     window_end = start + row_bytes;
                   }
                   window.resize(window_end - window_begin);
                   file_.read(data_begin_ + window_begin, window.data(), window_end - window_begin);
                   for (Index i = k; i < next; ++i)
                     take(position(i), window.data() + (row_begin(i) - window_begin));
                 }
               });
}

template <class T>
void NpyFile::read_rows(std::span<const Index> rows, std::span<T> out) const {
  require_readable_as<T>(type_, path());
  require<ShapeError>(static_cast<Index>(out.size()) == static_cast<Index>(rows.size()) * row_size_, path(),
                      ": cannot read ", rows.size(), " rows of ", row_size_, " elements into ", out.size());
  for_each_row(rows, [&](Index i, const std::byte* row) {
    convert_elements(type_, row, row_size_, out.data() + i * row_size_);
  });
}

void NpyFile::read_rows_raw(std::span<const Index> rows, std::span<std::byte> out) const {
  const Index row_bytes = row_size_ * element_bytes(type_);
  require<ShapeError>(static_cast<Index>(out.size()) == static_cast<Index>(rows.size()) * row_bytes, path(),
                      ": cannot read ", rows.size(), " rows of ", row_bytes, " bytes into ", out.size());
  for_each_row(
      rows, [&](Index i, const std::byte* row) { std::copy_n(row, row_bytes, out.data() + i * row_bytes); });
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
  with_type(type, [&](auto element) {
    using Stored = decltype(element);
    constexpr std::size_t chunk = std::size_t{1} << 16;
    std::vector<std::byte> bytes(std::min(chunk, values.size()) * sizeof(Stored));
    for (std::size_t begin = 0; begin < values.size(); begin += chunk) {
      const std::size_t count = std::min(chunk, values.size() - begin);
      for (std::size_t i = 0; i < count; ++i) {
        if constexpr (std::same_as<Stored, std::uint16_t>)
          element = float_to_half(static_cast<double>(values[begin + i]));
        else
          element = static_cast<Stored>(values[begin + i]);
        std::memcpy(bytes.data() + i * sizeof(Stored), &element, sizeof(Stored));
      }
      file.write(std::span(bytes).first(count * sizeof(Stored)));
    }
  });
  file.commit();
}

#define SAR_INSTANTIATE(T)                                                                             \
  template void NpyFile::read<T>(Index, Index, std::span<T>) const;                                    \
  template void NpyFile::read_rows<T>(std::span<const Index>, std::span<T>) const;                     \
  template void write_npy<T>(const std::string&, std::span<const Index>, std::span<const T>, NpyType); \
  template void convert_elements<T>(NpyType, const std::byte*, Index, T*);
SAR_INSTANTIATE(float)
SAR_INSTANTIATE(double)
SAR_INSTANTIATE(std::uint8_t)
SAR_INSTANTIATE(std::int32_t)
SAR_INSTANTIATE(std::int64_t)
#undef SAR_INSTANTIATE

}}  // namespace sar
