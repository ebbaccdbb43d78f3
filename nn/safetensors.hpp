/// Files of the safetensors format (huggingface/safetensors): tensors by name, which PyTorch, NumPy and
/// others read and write. docs/file_formats.md describes them.
///
/// Errors are InputError: one sentence with the file, what was found and what was expected. Nothing here is
/// collective.
#pragma once

#include <sar/core/file.hpp>
#include <sar/nn/module.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sar {

/// The element types that are understood; little-endian.
enum class SafetensorsType { boolean, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64 };

[[nodiscard]] const char* to_string(SafetensorsType type) noexcept;  ///< as in the file: "F32", "BF16"
[[nodiscard]] Index element_bytes(SafetensorsType type) noexcept;

/// The type that holds sar::real exactly.
inline constexpr SafetensorsType real_type =
    sizeof(real) == 8 ? SafetensorsType::float64 : SafetensorsType::float32;

/// A tensor of a file.
struct SafetensorsEntry {
  std::string name;
  SafetensorsType type = SafetensorsType::float32;
  std::vector<Index> shape;  ///< empty: a single number
  Index size = 1;            ///< number of elements
  Index offset = 0;          ///< of the first byte in the file
};

/// An open file. Header and size are checked once: known types, and data that fill the file without gaps and
/// overlaps. Tensors are read on demand.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  /// In the order of their data.
  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const noexcept { return entries_; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }

  /// Compares the data with the checksum in the metadata. Files of other programs have none: nothing to do.
  void verify_checksum() const;

  /// The values, converted; a single number has shape [1]. Throws for integers, for more than 4 dimensions
  /// and for values that are not finite (or not as sar::real).
  [[nodiscard]] Tensor tensor(const SafetensorsEntry& entry) const;
  /// The value of an integer or boolean tensor of one element. Throws for others.
  [[nodiscard]] std::int64_t integer(const SafetensorsEntry& entry) const;

 private:
  InputFile file_;
  Index data_begin_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Writes counters (as int64 of shape []) and tensors, these as `type`: a floating-point type, rounded to
/// nearest, ties to even. The metadata get a checksum of the data. The file is written under another name,
/// flushed and renamed (TemporaryFile). Throws for a name that is used twice, for a value that is not finite
/// in `type`, and when writing fails.
void write_safetensors(const std::string& path, const std::vector<NamedBuffer>& tensors,
                       const std::vector<NamedCounter>& counters, SafetensorsType type,
                       std::map<std::string, std::string> metadata = {});

}  // namespace sar
