// SPDX-License-Identifier: MIT

/// DataArray: a node or edge field in the element type of its file.
#pragma once

#include <sar/core/files/npy.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The name, type and row shape of a field, known before its data are read.
struct DataField {
  std::string name;
  NpyType type = NpyType::float32;
  std::vector<Index> row_shape;  ///< shape of one row; empty: a single number
  bool is_sparse = false;        ///< the rows are, or shall be, a SparseArray

  [[nodiscard]] Index row_size() const noexcept;  ///< elements per row
  [[nodiscard]] Index row_bytes() const noexcept { return row_size() * element_bytes(type); }
  bool operator==(const DataField&) const = default;
};

/// Local. Returns the description of the field that `file` contains, with one row per node or edge.
DataField field_of(const std::string& name, const NpyFile& file);

/// The data of a field: one row per node or edge, in C order.
struct DataArray {
  NpyType type = NpyType::float32;
  std::vector<Index> row_shape;  ///< shape of one row; empty: a single number
  Index num_rows = 0;
  Array<std::byte> bytes;  ///< num_rows * row_bytes()

  DataArray() = default;
  /// Allocates uninitialized rows.
  DataArray(NpyType type, std::vector<Index> row_shape, Index num_rows);

  [[nodiscard]] Index row_size() const noexcept;
  [[nodiscard]] Index row_bytes() const noexcept { return row_size() * element_bytes(type); }
  [[nodiscard]] const std::byte* row(Index i) const noexcept { return bytes.data() + i * row_bytes(); }
  [[nodiscard]] std::byte* row(Index i) noexcept { return bytes.data() + i * row_bytes(); }

  /// Returns a tensor [num_rows, row_shape...] with the values converted to `real`.
  [[nodiscard]] Tensor to_tensor() const;
  /// Returns one integer per row. Throws InputError with a message that begins with `name` for rows of more
  /// than one element and for a row that is not an integer of 64 bits. `ids` are the numbers of the rows in
  /// messages, if they are not 0, 1, ...
  [[nodiscard]] Array<std::int64_t> to_integers(const std::string& name,
                                                std::span<const Index> ids = {}) const;
  /// Returns one 0 or 1 per row. Throws as to_integers() and for other numbers than 0 and 1.
  [[nodiscard]] Array<std::uint8_t> to_mask(const std::string& name, std::span<const Index> ids = {}) const;
  /// Returns the listed rows in the order of the list; a row may be listed repeatedly.
  [[nodiscard]] DataArray take(const Array<Index>& rows) const;
};

/// Fields by name: "features", "labels", "train_mask", ...
using DataColumns = std::map<std::string, DataArray>;

/// Local. Returns the descriptions of the fields, sorted by name.
std::vector<DataField> fields_of(const DataColumns& columns);

/// Local. Reads the listed rows of a file, in the order of the list. Throws InputError as NpyFile.
DataArray read_rows(const NpyFile& file, std::span<const Index> rows);

}}  // namespace sar
