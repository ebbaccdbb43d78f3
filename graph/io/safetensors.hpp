/// Files of the safetensors format (huggingface/safetensors): tensors by name, which PyTorch, NumPy and
/// others read and write. docs/file_formats.md describes the format.
///
/// Everything here is local. Errors are InputError: one sentence with the file, what was found and what was
/// expected.
#pragma once

#include <sar/core/file.hpp>
#include <sar/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The element types that are understood; little-endian.
enum class SafetensorsType { boolean, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64 };

[[nodiscard]] const char* to_string(SafetensorsType type) noexcept;  ///< as in the file: "F32", "BF16"
[[nodiscard]] Index element_bytes(SafetensorsType type) noexcept;

/// The type that holds sar::real exactly.
inline constexpr SafetensorsType real_type =
    sizeof(real) == 8 ? SafetensorsType::float64 : SafetensorsType::float32;

/// The description of a tensor in a file.
struct SafetensorsEntry {
  std::string name;
  SafetensorsType type = SafetensorsType::float32;
  std::vector<Index> shape;  ///< empty: a single number
  Index size = 1;            ///< number of elements
  Index offset = 0;          ///< of the first byte in the file

  [[nodiscard]] Index bytes() const noexcept { return size * element_bytes(type); }
};

/// An open file. The constructor checks the header and the file's size: types are known, and the data fill
/// the file without gaps and overlaps. Tensors are read on demand.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  /// In the order of their data.
  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const noexcept { return entries_; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }

  /// Compares the data with the checksum in the metadata. Files of other programs have none and pass.
  void verify_checksum() const;

  /// The values, converted; a single number gets shape [1]. Throws for integers, for more than 4 dimensions
  /// and for values that are not finite (or not as sar::real).
  [[nodiscard]] Tensor tensor(const SafetensorsEntry& entry) const;
  /// The value of an integer or boolean tensor of one element. Throws for others.
  [[nodiscard]] std::int64_t integer(const SafetensorsEntry& entry) const;
  /// The elements as they lie in the file; `out` has entry.bytes() bytes.
  void read_raw(const SafetensorsEntry& entry, std::span<std::byte> out) const;

 private:
  void read_header();
  void check_layout();

  InputFile file_;
  Index data_begin_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
struct NamedInteger {
  std::string name;
  std::int64_t value = 0;
};

/// Writes integers (as int64 of shape []) and tensors, these as `type`: a floating-point type, rounded to
/// nearest, ties to even. A checksum of the data is added to the metadata. The file is written under another
/// name, flushed and renamed (TemporaryFile). Throws for a name that is used twice, for a value that is not
/// finite in `type`, and when writing fails.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const std::vector<NamedInteger>& integers, SafetensorsType type,
                       std::map<std::string, std::string> metadata = {});

}  // namespace sar
