// SPDX-License-Identifier: MIT

// A file has the length of its header (8 bytes, little-endian), the header in JSON, padded with blanks to
// a multiple of 8 bytes, and the data of all tensors one after the other.
//
// Values are converted in chunks of 2^16 elements. Writing converts them twice: once for the checksum,
// which the header contains, and once for the file. So no converted copy of a tensor is ever in memory.
// The checksum is CRC-32 with a table of 256 entries, one byte at a time.
#include <sar/core/error.hpp>
#include <sar/core/files/json.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/core/numbers.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are used as they lie in the file");

constexpr Index max_header_bytes = 100'000'000;  // the same limit as the reference implementation
constexpr Index window = 1 << 16;                // elements converted at a time
constexpr const char* metadata_key = "__metadata__";
constexpr std::size_t header_depth = 3;        // of values: header, tensor, shape
constexpr const char* checksum_key = "crc32";  // of the data
constexpr const char* header_checksum_key = "header_crc32";
constexpr std::size_t checksum_digits = 8;

struct TensorType {
  const char* name;
  Index bytes;
};
constexpr std::array<TensorType, 10> tensor_types{{{"BOOL", 1},
                                                   {"U8", 1},
                                                   {"I8", 1},
                                                   {"I16", 2},
                                                   {"I32", 4},
                                                   {"I64", 8},
                                                   {"F16", 2},
                                                   {"BF16", 2},
                                                   {"F32", 4},
                                                   {"F64", 8}}};

std::optional<SafetensorsType> type_named(const std::string& name) {
  for (std::size_t i = 0; i < tensor_types.size(); ++i)
    if (name == tensor_types[i].name) return static_cast<SafetensorsType>(i);
  return std::nullopt;
}

std::string to_text(const std::vector<Index>& numbers, const char* separator = ", ") {
  std::string text = "[";
  for (const Index number : numbers) text += (text.size() > 1 ? separator : "") + std::to_string(number);
  return text + "]";
}

/// CRC-32 as in zlib and PNG.
class Crc32 {
 public:
  void add(const std::byte* bytes, Index count) {
    for (Index i = 0; i < count; ++i)
      state_ = table[(state_ ^ static_cast<std::uint32_t>(bytes[i])) & 0xff] ^ (state_ >> 8);
  }
  [[nodiscard]] std::string text() const {
    std::array<char, checksum_digits + 1> hex{};
    std::snprintf(hex.data(), hex.size(), "%08x", ~state_);
    return hex.data();
  }

 private:
  static constexpr std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> remainders{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320u ^ (value >> 1) : value >> 1;
      remainders[i] = value;
    }
    return remainders;
  }();
  std::uint32_t state_ = 0xffffffff;
};

/// Returns where the digits of its own checksum are in a header; npos if it has none. A comma and a quote
/// that is not escaped are never inside of a JSON string. The key of the checksum of the data comes before.
std::size_t place_of_checksum(const std::string& header) {
  const std::string before = concat(",\"", header_checksum_key, "\":\"");
  const std::size_t found = header.find(before);
  return found == std::string::npos ? found : found + before.size();
}

/// Returns the checksum of a header, in which its own digits count as zeros.
std::string checksum_of(std::string header) {
  if (const std::size_t place = place_of_checksum(header); place != std::string::npos)
    header.replace(place, checksum_digits, checksum_digits, '0');
  Crc32 crc;
  crc.add(reinterpret_cast<const std::byte*>(header.data()), std::ssize(header));
  return crc.text();
}

/// Returns whether a file that begins with these bytes is a .pt file: a ZIP archive or, before PyTorch 1.6, a
/// pickle. Read as a header length, the bytes would be too large.
bool is_of_torch(std::uint64_t first_bytes) {
  const std::uint64_t four = first_bytes & 0xffffffff;
  return (four == 0x04034b50 && first_bytes > max_header_bytes) || four == 0x0a8a0280;
}

std::vector<Index> to_indices(const Json& value, const std::string& where) {
  require<InputError>(value.is_array(), where, " is ", value.type_name(), ", expected an array");
  std::vector<Index> numbers;
  for (const Json& element : value) {
    require<InputError>(element.is_number_unsigned() && std::in_range<Index>(element.get<std::uint64_t>()),
                        where, " has an element that is not an integer from 0 to below 2^63");
    numbers.push_back(element.get<Index>());
  }
  return numbers;
}

/// Parses one tensor of the header. The offset is still relative to the beginning of the data.
SafetensorsEntry parse_entry(const std::string& name, const Json& value, const std::string& path) {
  const std::string where = concat(path, ": the tensor '", name, "'");
  require<InputError>(value.is_object() && value.size() == 3 && value.contains("dtype") &&
                          value.contains("shape") && value.contains("data_offsets"),
                      where, " is described otherwise than by dtype, shape and data_offsets");
  SafetensorsEntry entry;
  entry.name = name;
  const Json& dtype = value["dtype"];
  const std::optional<SafetensorsType> type =
      dtype.is_string() ? type_named(dtype.get<std::string>()) : std::nullopt;
  require<InputError>(type.has_value(), where, " has dtype ",
                      dtype.is_string() ? dtype.get<std::string>() : dtype.type_name(),
                      ", expected BOOL, U8, I8, I16, I32, I64, F16, BF16, F32 or F64");
  entry.type = *type;
  entry.shape = to_indices(value["shape"], where + ": shape");
  Index bytes = element_bytes(entry.type);
  require<InputError>(entry.shape.size() <= max_file_dims, where, " has ", entry.shape.size(),
                      " dimensions, expected at most ", max_file_dims);
  for (const Index extent : entry.shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      throw InputError(concat(where, " has shape ", to_text(entry.shape),
                              ", more bytes than a file can have, expected less than 2^63"));
  entry.size = bytes / element_bytes(entry.type);
  const std::vector<Index> offsets = to_indices(value["data_offsets"], where + ": data_offsets");
  require<InputError>(offsets.size() == 2 && offsets[0] <= offsets[1], where, " has data_offsets ",
                      to_text(offsets), ", expected begin and end");
  require<InputError>(offsets[1] - offsets[0] == bytes, where, " has ", offsets[1] - offsets[0],
                      " bytes of data, expected ", bytes, " for shape ", to_text(entry.shape), " of ",
                      to_string(entry.type));
  entry.offset = offsets[0];
  return entry;
}

/// Calls use(bytes, count) for consecutive chunks of the stored elements.
template <class Use>
void for_each_window(const NamedTensor& named, SafetensorsType type, const std::string& path,
                     const Use& use) {
  std::vector<std::byte> bytes(std::min(window, named.tensor.size()) * element_bytes(type));
  const auto convert = [&](const real* values, Index count, auto to_stored, auto is_finite) {
    for (Index i = 0; i < count; ++i) {
      const auto stored = to_stored(static_cast<double>(values[i]));
      require<InputError>(is_finite(stored), path, ": the value ", values[i], " of '", named.name,
                          "' cannot be written, expected a finite number as ", to_string(type));
      std::memcpy(bytes.data() + i * static_cast<Index>(sizeof stored), &stored, sizeof stored);
    }
  };
  const auto is_finite = [](auto stored) { return std::isfinite(stored); };
  for (Index begin = 0; begin < named.tensor.size(); begin += window) {
    const real* values = named.tensor.data() + begin;
    const Index count = std::min(window, named.tensor.size() - begin);
    switch (type) {
      case SafetensorsType::float16:
        convert(values, count, float_to_half, [](std::uint16_t half) { return (half & 0x7c00) != 0x7c00; });
        break;
      case SafetensorsType::bfloat16:
        convert(values, count, float_to_bfloat16,
                [](std::uint16_t stored) { return (stored & 0x7f80) != 0x7f80; });
        break;
      case SafetensorsType::float32:
        convert(
            values, count, [](double value) { return static_cast<float>(value); }, is_finite);
        break;
      case SafetensorsType::float64:
        convert(
            values, count, [](double value) { return value; }, is_finite);
        break;
      case SafetensorsType::boolean:  // tensors are not written as integers
      case SafetensorsType::uint8:
      case SafetensorsType::int8:
      case SafetensorsType::int16:
      case SafetensorsType::int32:
      case SafetensorsType::int64:
        break;
    }
    use(bytes.data(), count * element_bytes(type));
  }
}

bool is_floating_point(SafetensorsType type) noexcept {
  return type >= SafetensorsType::float16;
}

/// Returns a text as a JSON string.
std::string quoted(const std::string& text, const std::string& path) {
  try {
    return Json(text).dump();
  } catch (const Json::type_error&) {
    throw InputError(path + ": a name or a text of the metadata is not UTF-8, expected UTF-8");
  }
}

/// Returns the header, padded so that the data are aligned. The text is concatenated here instead of by the
/// JSON library, whose nested values are not destroyed properly if memory runs out during construction.
std::string format_header(const std::string& path, const std::vector<NamedTensor>& tensors,
                          const std::vector<NamedInteger>& integers, SafetensorsType type,
                          const std::map<std::string, std::string>& metadata) {
  std::string text = concat("{\"", metadata_key, "\":{");
  for (const auto& [key, value] : metadata)
    text += concat(text.back() == '{' ? "" : ",", quoted(key, path), ":", quoted(value, path));
  text += "}";
  std::set<std::string> names{metadata_key};
  Index offset = 0;
  const auto add = [&](const std::string& name, SafetensorsType stored, const std::vector<Index>& shape,
                       Index bytes) {
    require<InputError>(names.insert(name).second, path, ": the name '", name,
                        "' cannot be written twice, expected names that differ");
    const Index begin = std::exchange(offset, offset + bytes);
    text += concat(",", quoted(name, path), ":{\"dtype\":\"", to_string(stored),
                   "\",\"shape\":", to_text(shape, ","), ",\"data_offsets\":", to_text({begin, offset}, ","),
                   "}");
  };
  for (const NamedInteger& named : integers) add(named.name, SafetensorsType::int64, {}, 8);
  for (const auto& [name, tensor] : tensors) {
    std::vector<Index> shape;
    for (int d = 0; d < tensor.shape().dims(); ++d) shape.push_back(tensor.shape()[d]);
    add(name, type, shape, tensor.size() * element_bytes(type));
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  return text.replace(place_of_checksum(text), checksum_digits, checksum_of(text));
}

}  // namespace

const char* to_string(SafetensorsType type) noexcept {
  return tensor_types[static_cast<unsigned>(type)].name;
}
Index element_bytes(SafetensorsType type) noexcept {
  return tensor_types[static_cast<unsigned>(type)].bytes;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path, "a .safetensors file") {
  read_header();
  check_layout();
}

void SafetensorsFile::read_header() {
  const std::string& path = file_.path();
  require<InputError>(file_.size() >= 8, path, ": the file has ", file_.size(),
                      " bytes, expected a .safetensors file, which begins with the 8 bytes of a length");
  std::uint64_t header_bytes = 0;
  file_.read(0, &header_bytes, 8);
  require<InputError>(!is_of_torch(header_bytes), path,
                      ": the file is one of torch.save, expected a .safetensors file, which Python makes of "
                      "it: safetensors.torch.save_file(torch.load('",
                      path, "', weights_only=True), 'weights.safetensors')");
  require<InputError>(
      header_bytes <= static_cast<std::uint64_t>(std::min(file_.size() - 8, max_header_bytes)), path,
      ": the file has ", file_.size(), " bytes and a header of ", header_bytes,
      ", expected a .safetensors file, whose header is in it and at most ", max_header_bytes, " long");
  std::string text(header_bytes, ' ');
  file_.read(8, text.data(), static_cast<Index>(header_bytes));
  require<InputError>(text.starts_with('{'), path,
                      ": the header does not begin with '{', expected a .safetensors file");
  data_begin_ = 8 + static_cast<Index>(header_bytes);

  const Json header = parse_json(text, path + ": the header", "a .safetensors file", header_depth);
  for (const auto& [name, value] : header.items()) {
    if (name != metadata_key) {
      entries_.push_back(parse_entry(name, value, path));
      continue;
    }
    require<InputError>(value.is_object() || value.is_null(), path, ": ", metadata_key, " is ",
                        value.type_name(), ", expected an object or null");
    for (const auto& [key, content] : value.items()) {
      require<InputError>(content.is_string(), path, ": ", metadata_key, " has ", content.type_name(),
                          " as '", key, "', expected a string");
      metadata_[key] = content.get<std::string>();
    }
  }
  if (const auto expected = metadata_.find(header_checksum_key); expected != metadata_.end()) {
    const std::string found = checksum_of(std::move(text));
    require<InputError>(found == expected->second, path, ": the header has the checksum ", found,
                        ", expected ", expected->second);
  }
}

/// Sorts the entries by offset and checks that they fill the rest of the file.
void SafetensorsFile::check_layout() {
  std::sort(entries_.begin(), entries_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.offset, a.size) < std::pair(b.offset, b.size);
  });
  Index end = 0;
  for (SafetensorsEntry& entry : entries_) {
    require<InputError>(entry.offset == end, path(), ": the data of the tensor '", entry.name,
                        "' begin at byte ", entry.offset, ", expected ", end,
                        ", where those before them end");
    end += entry.bytes();  // cannot overflow: it is the second data_offset
    entry.offset += data_begin_;
  }
  require<InputError>(end == file_.size() - data_begin_, path(), ": the file has ",
                      file_.size() - data_begin_, " bytes of data, expected ", end,
                      " for the tensors of its header");
}

void SafetensorsFile::verify_checksum() const {
  const auto expected = metadata_.find(checksum_key);
  if (expected == metadata_.end()) return;
  Crc32 crc;
  std::vector<std::byte> bytes(1 << 20);
  for (Index at = data_begin_; at < file_.size();) {
    const Index count = std::min(static_cast<Index>(bytes.size()), file_.size() - at);
    file_.read(at, bytes.data(), count);
    crc.add(bytes.data(), count);
    at += count;
  }
  require<InputError>(crc.text() == expected->second, path(), ": the data have the checksum ", crc.text(),
                      ", expected ", expected->second);
}

Tensor SafetensorsFile::tensor(const SafetensorsEntry& entry) const {
  const auto where = [&] { return concat(path(), ": the tensor '", entry.name, "'"); };
  require<InputError>(is_floating_point(entry.type), where(), " has dtype ", to_string(entry.type),
                      ", expected F16, BF16, F32 or F64");
  require<InputError>(entry.shape.size() <= 4, where(), " has shape ", to_text(entry.shape),
                      ", expected 4 dimensions at most");
  Tensor result(entry.shape.empty() ? Shape{1} : Shape(entry.shape));
  std::vector<std::byte> bytes(std::min(window, entry.size) * element_bytes(entry.type));
  const auto convert = [&](Index begin, Index count, auto stored, auto to_number) {
    for (Index i = 0; i < count; ++i) {
      std::memcpy(&stored, bytes.data() + i * static_cast<Index>(sizeof stored), sizeof stored);
      result.data()[begin + i] = static_cast<real>(to_number(stored));
    }
  };
  for (Index begin = 0; begin < entry.size; begin += window) {
    const Index count = std::min(window, entry.size - begin);
    file_.read(entry.offset + begin * element_bytes(entry.type), bytes.data(),
               count * element_bytes(entry.type));
    if (entry.type == SafetensorsType::float16) convert(begin, count, std::uint16_t{}, half_to_float);
    if (entry.type == SafetensorsType::bfloat16) convert(begin, count, std::uint16_t{}, bfloat16_to_float);
    if (entry.type == SafetensorsType::float32) convert(begin, count, float{}, [](float x) { return x; });
    if (entry.type == SafetensorsType::float64) convert(begin, count, double{}, [](double x) { return x; });
  }
  for (const real value : result.values())
    require<InputError>(
        std::isfinite(value), where(), " has the value ", value, ", expected finite numbers",
        entry.type == SafetensorsType::float64 && sizeof(real) == 4 ? " of single precision" : "");
  return result;
}

std::int64_t SafetensorsFile::integer(const SafetensorsEntry& entry) const {
  require<InputError>(!is_floating_point(entry.type) && entry.size == 1, path(), ": the tensor '", entry.name,
                      "' has dtype ", to_string(entry.type), " and shape ", to_text(entry.shape),
                      ", expected one integer");
  const auto value = [&](auto stored) {
    file_.read(entry.offset, &stored, sizeof stored);
    return static_cast<std::int64_t>(stored);
  };
  switch (entry.type) {
    case SafetensorsType::boolean:
    case SafetensorsType::uint8:
      return value(std::uint8_t{});
    case SafetensorsType::int8:
      return value(std::int8_t{});
    case SafetensorsType::int16:
      return value(std::int16_t{});
    case SafetensorsType::int32:
      return value(std::int32_t{});
    case SafetensorsType::int64:
    case SafetensorsType::float16:  // refused above
    case SafetensorsType::bfloat16:
    case SafetensorsType::float32:
    case SafetensorsType::float64:
      break;
  }
  return value(std::int64_t{});
}

void SafetensorsFile::read_raw(const SafetensorsEntry& entry, std::span<std::byte> out) const {
  require<ShapeError>(std::ssize(out) == entry.bytes(), path(), ": the tensor '", entry.name, "' has ",
                      entry.bytes(), " bytes, which cannot be read into ", out.size());
  file_.read(entry.offset, out.data(), entry.bytes());
}

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const std::vector<NamedInteger>& integers, SafetensorsType type,
                       std::map<std::string, std::string> metadata) {
  require<InputError>(is_floating_point(type), path, ": tensors cannot be written as ", to_string(type),
                      ", expected F16, BF16, F32 or F64");
  const auto pass_data = [&](const auto& use) {
    // Integers come first: each has 8 bytes, so the tensors stay aligned.
    for (const NamedInteger& named : integers) use(reinterpret_cast<const std::byte*>(&named.value), 8);
    for (const NamedTensor& named : tensors) for_each_window(named, type, path, use);
  };
  Crc32 crc;
  pass_data([&](const std::byte* bytes, Index count) { crc.add(bytes, count); });
  metadata[checksum_key] = crc.text();
  metadata[header_checksum_key] = std::string(checksum_digits, '0');  // format_header() replaces it

  const std::string text = format_header(path, tensors, integers, type, metadata);
  TemporaryFile file(path);
  const std::uint64_t length = text.size();
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  pass_data([&](const std::byte* bytes, Index count) { file.write(bytes, count); });
  file.commit();
}

}}  // namespace sar
