// SPDX-License-Identifier: MIT

/// SparseMatrix: a constant matrix that stores few of its values, row by row.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/deferred_rows.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// A matrix [n, d] of which each row stores some columns, in increasing order, and their values; all other
/// values are 0 (compressed sparse rows, CSR). It takes 4 bytes and a `real` for each stored value, and 8
/// bytes for each row.
///
/// Products, dropout, and operations that choose rows read the stored values
/// (core/products/sparse_product.hpp, autograd/sparse_variable.hpp). Any other operation reads the dense rows
/// of all(), which are then kept as long as this object. Immutable; slices and copies with other values share
/// memory. All functions are local.
class SparseMatrix : public DeferredRows {
 public:
  /// Row i stores columns[row_offsets[i]] .. columns[row_offsets[i + 1] - 1]. Columns of a row may come in
  /// any order; they are sorted. Throws ShapeError unless `row_offsets` has n + 1 numbers that do not
  /// decrease, from 0 to the length of both `columns` and `values`; InputError for a column that is not in
  /// [0, num_columns) or that a row stores twice.
  SparseMatrix(Index num_columns, Array<Index> row_offsets, Array<std::int32_t> columns, Array<real> values);

  [[nodiscard]] Index num_rows() const noexcept { return shape()[0]; }
  [[nodiscard]] Index num_columns() const noexcept { return shape()[1]; }
  [[nodiscard]] Index num_stored() const noexcept { return static_cast<Index>(columns_.size()); }
  /// n + 1 numbers: the stored values of row i are row_offsets()[i] .. row_offsets()[i + 1] - 1.
  [[nodiscard]] std::span<const Index> row_offsets() const noexcept { return *offsets_; }
  [[nodiscard]] std::span<const std::int32_t> columns() const noexcept { return columns_; }
  [[nodiscard]] std::span<const real> values() const noexcept { return values_; }

  /// Returns the same columns with other values. Throws ShapeError unless there are num_stored() of them.
  [[nodiscard]] std::shared_ptr<const SparseMatrix> with_values(Array<real> values) const;
  /// Returns rows [begin, end). Throws ShapeError if out of range.
  [[nodiscard]] std::shared_ptr<const SparseMatrix> slice(Index begin, Index end) const;
  /// Returns the listed rows, copied. Throws ShapeError if a row is out of range.
  [[nodiscard]] std::shared_ptr<const SparseMatrix> gather(std::span<const Index> rows) const;

  /// Has no reads(): the stored values of a few rows are in the cache after the first is read.
  void compute(Index first, Index count, real* out) const override;

 private:
  SparseMatrix(const Shape& shape, std::shared_ptr<const Array<Index>> offsets, const SparseMatrix& of);

  std::shared_ptr<const Array<Index>> offsets_;
  std::shared_ptr<const Array<std::int32_t>> all_columns_;  // shared with slices
  std::shared_ptr<const Array<real>> all_values_;
  std::span<const std::int32_t> columns_;
  std::span<const real> values_;
};

}}  // namespace sar
