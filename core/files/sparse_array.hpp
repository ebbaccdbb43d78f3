// SPDX-License-Identifier: MIT

/// SparseArray: a node field of which few values are not 0, in the element type of its file.
#pragma once

#include <sar/core/files/data_array.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

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
