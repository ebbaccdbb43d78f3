// SPDX-License-Identifier: MIT

/// Files in the safetensors format (huggingface/safetensors): named tensors that PyTorch, NumPy and others
/// read and write. docs/file_formats.md describes the format.
///
/// Everything here is local. Errors are InputError with the file, the value found and the value expected.
#pragma once

#include <sar/core/files/file.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The supported element types; little-endian.
enum class SafetensorsType { boolean, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64 };

[[nodiscard]] const char* to_string(SafetensorsType type) noexcept;  ///< the format's name: "F32", "BF16"
[[nodiscard]] Index element_bytes(SafetensorsType type) noexcept;

/// The element type of sar::real.
inline constexpr SafetensorsType real_type =
    sizeof(real) == 8 ? SafetensorsType::float64 : SafetensorsType::float32;

/// The description of a tensor in a file.
struct SafetensorsEntry {
  std::string name;
  SafetensorsType type = SafetensorsType::float32;
  std::vector<Index> shape;  ///< empty: a single number
  Index size = 1;            ///< number of elements
  Index offset = 0;          ///< position of the first byte in the file

  [[nodiscard]] Index bytes() const noexcept { return size * element_bytes(type); }
};

/// An open file. The constructor checks the header, with its checksum in the metadata if there is one, and
/// the file's size: all types must be supported, and the data must fill the file without gaps or overlaps.
/// Tensors are read on demand.
class SafetensorsFile {
 public:
  /// Throws InputError if the file cannot be opened or is invalid.
  explicit SafetensorsFile(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  /// Returns the descriptions of all tensors, in the order of their data.
  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const noexcept { return entries_; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }

  /// Compares the data with the checksum in the metadata and throws InputError if they differ. Files of other
  /// programs have no checksum and pass.
  void verify_checksum() const;

  /// Returns the values converted to `real`; a single number gets shape [1]. Throws InputError for integers,
  /// more than 4 dimensions, and values that are not finite in the file or as sar::real.
  [[nodiscard]] Tensor tensor(const SafetensorsEntry& entry) const;
  /// Returns the value of an integer or boolean tensor with one element. Throws InputError for any other.
  [[nodiscard]] std::int64_t integer(const SafetensorsEntry& entry) const;
  /// Reads the elements without conversion; `out` has entry.bytes() bytes.
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

/// Writes integers (as int64 with shape []) and tensors, converted to the floating-point type `type` (rounded
/// to nearest, ties to even). Adds checksums of the data and of the header to the metadata. The file is
/// written under a temporary name, flushed and renamed (TemporaryFile). Throws InputError for a duplicate
/// name, for a value that is not finite in `type`, and if writing fails.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const std::vector<NamedInteger>& integers, SafetensorsType type,
                       std::map<std::string, std::string> metadata = {});

}}  // namespace sar
