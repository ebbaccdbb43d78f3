/// DataArray: a field of nodes or edges in the type of its file.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/io/npy.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The description of a field, known before its data are read.
struct DataField {
  std::string name;
  NpyType type = NpyType::float32;
  std::vector<Index> row_shape;  ///< of one node or edge; empty: one number

  [[nodiscard]] Index row_size() const noexcept;   ///< elements of a row
  [[nodiscard]] Index row_bytes() const noexcept;  ///< row_size() * element_bytes(type)
  bool operator==(const DataField&) const = default;
};

/// The field that a file with one row for each node or edge holds. Local.
DataField field_of(const std::string& name, const NpyFile& file);

/// The data of a field: one row for each node or edge, in C order as in NumPy.
struct DataArray {
  NpyType type = NpyType::float32;
  std::vector<Index> row_shape;  ///< of one row; empty: one number
  Index num_rows = 0;
  Array<std::byte> bytes;  ///< num_rows * row_bytes()

  DataArray() = default;
  /// Uninitialized rows.
  DataArray(NpyType type, std::vector<Index> row_shape, Index num_rows);

  [[nodiscard]] Index row_size() const noexcept;
  [[nodiscard]] Index row_bytes() const noexcept;
  [[nodiscard]] const std::byte* row(Index i) const noexcept { return bytes.data() + i * row_bytes(); }
  [[nodiscard]] std::byte* row(Index i) noexcept { return bytes.data() + i * row_bytes(); }

  /// [num_rows, row_shape...], converted.
  [[nodiscard]] Tensor to_tensor() const;
  /// One integer a row. Throws InputError, beginning with `name`, for a floating-point type and for rows of
  /// more than one element.
  [[nodiscard]] Array<std::int64_t> to_integers(const std::string& name) const;
  /// One 0 or 1 a row: 1 where the integer or boolean is not 0. Throws as to_integers.
  [[nodiscard]] Array<std::uint8_t> to_mask(const std::string& name) const;
  /// The listed rows, in that order, repetitions allowed.
  [[nodiscard]] DataArray take(const Array<Index>& rows) const;
};

/// Data by name: "features", "labels", "train_mask", ...
using DataColumns = std::map<std::string, DataArray>;

/// In the order of their names. Local.
std::vector<DataField> fields_of(const DataColumns& columns);

/// The listed rows of a file, in that order. Local. Throws InputError as NpyFile.
DataArray read_rows(const NpyFile& file, std::span<const Index> rows);

}  // namespace sar
