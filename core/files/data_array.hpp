// SPDX-License-Identifier: MIT

/// DataArray and SparseArray: a node or edge field in the element type of its file.
#pragma once

#include <sar/core/files/npy.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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

// SparseArray: a node field of which few values are not 0, in the element type of its file.

/// The rows of a field in compressed form (CSR): of each row, the columns whose values are not 0, in
/// increasing order, and these values. Columns count through the elements of a row in C order.
struct SparseArray {
  NpyType type = NpyType::float32;
  std::vector<Index> row_shape;      ///< shape of one row
  Array<Index> row_offsets = {0};    ///< num_rows() + 1: where the values of each row begin
  Array<std::int32_t> columns = {};  ///< of each stored value
  Array<std::byte> bytes = {};       ///< the stored values

  [[nodiscard]] Index num_rows() const noexcept { return std::ssize(row_offsets) - 1; }
  [[nodiscard]] Index num_stored() const noexcept { return std::ssize(columns); }
  [[nodiscard]] Index row_size() const noexcept { return DataField{"", type, row_shape}.row_size(); }

  /// Local. Appends dense rows of the same type and width, compressed. `rows_to_come` is how many rows will
  /// follow; memory for them is reserved at once, as if they were alike. Throws InputError, beginning with
  /// `place`, for more than 2^31 - 1 columns.
  void append(const DataArray& rows, Index rows_to_come, const std::string& place);
  /// Local. Returns the listed rows as dense rows, in the order of the list.
  [[nodiscard]] DataArray dense_rows(std::span<const Index> rows) const;
  /// Local. Returns the stored values converted to `real`.
  [[nodiscard]] Array<real> values() const;
};

/// Sparse fields by name.
using SparseColumns = std::map<std::string, SparseArray>;

/// Local. Returns how many elements are not 0; NaN is not.
[[nodiscard]] Index count_stored(const DataArray& rows);

/// Local. Returns the rows [num_rows(), row_size()] as numbers. Throws InputError as SparseMatrix.
[[nodiscard]] std::shared_ptr<const SparseMatrix> to_sparse_matrix(SparseArray array);

/// Local. Returns sparse rows as a field of type npy_real.
[[nodiscard]] SparseArray to_sparse_array(const SparseMatrix& rows);
}}  // namespace sar
