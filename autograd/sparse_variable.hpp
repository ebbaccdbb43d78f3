// SPDX-License-Identifier: MIT

/// Sparse rows as a constant variable: bags of words and other features of which few are not 0.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/error.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the sparse rows of `x`; null if it has none. For authors of operations.
[[nodiscard]] std::shared_ptr<const SparseMatrix> sparse_matrix(const Variable& x);

/// Local. Concatenates sparse rows of one width. Throws ShapeError for other widths.
[[nodiscard]] Variable concat_sparse(std::span<const std::shared_ptr<const SparseMatrix>> parts);

/// Local. Returns a constant [n, num_columns] from its rows in compressed form (CSR, as SciPy's indptr,
/// indices and data): row i has values[k] in column columns[k] for k = row_offsets[i] .. row_offsets[i + 1]
/// - 1, and 0 elsewhere. The numbers are copied, offsets and columns of 32 or 64 bits, values of either
/// precision.
///
///     const Variable x = sparse_variable(1433, row_offsets, columns, values);
///     const Variable y = conv(graph, x);
///
/// linear(), affine(), matmul(), add_linear(), dropout(), gather_rows(), slice_rows() and concat_rows()
/// read the stored values; any other operation makes the dense rows, once, and reads these. Throws
/// ShapeError and InputError as SparseMatrix.
template <std::ranges::contiguous_range Offsets, std::ranges::contiguous_range Columns,
          std::ranges::contiguous_range Values>
requires(
    std::integral<std::ranges::range_value_t<Offsets>>&& std::integral<std::ranges::range_value_t<Columns>>&&
        std::floating_point<std::ranges::range_value_t<Values>>) [[nodiscard]] Variable
    sparse_variable(Index num_columns, const Offsets& row_offsets, const Columns& columns,
                    const Values& values) {
  Array<std::int32_t> narrow(std::ranges::size(columns));
  std::ranges::transform(columns, narrow.begin(), [&](auto column) {
    require<InputError>(std::in_range<std::int32_t>(column), "sparse rows store column ", column,
                        ", expected ", index_range(num_columns));
    return static_cast<std::int32_t>(column);
  });
  Array<real> converted(std::ranges::size(values));
  std::ranges::transform(values, converted.begin(), [](auto value) { return static_cast<real>(value); });
  return Variable(std::make_shared<const SparseMatrix>(
      num_columns, Array<Index>(std::ranges::begin(row_offsets), std::ranges::end(row_offsets)),
      std::move(narrow), std::move(converted)));
}
}}  // namespace sar
