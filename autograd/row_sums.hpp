// SPDX-License-Identifier: MIT

/// For authors of operations: gradients of operands without rows of their own, such as parameters, in a
/// ReproducibleScope. They are sums over the rows of all ranks: the first rank keeps them, and others add 0.
/// Of a chunk of the rows (chunk_sums()), they are exact sums, and nothing is collective. An operation asks
/// rank_sums() when it is recorded and keeps the answer for its backward pass.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/products/row_operand.hpp>
#include <sar/core/threads/rank_sums.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Collective where the result is defined. If sums are reproducible (`sums` is not null) and the rows of
/// `terms` all belong to one row of the result, that is, if that has fewer dimensions or one row, returns
/// their sum, also over other dimensions of 1. Otherwise returns undefined rows. A result with as many
/// dimensions as the terms is taken for a row where the terms are one row: all ranks make the same calls for
/// any numbers of rows only if it has fewer.
[[nodiscard]] TypedRows row_sums(const RankSumsPtr& sums, const Shape& result, const Tensor& terms);

/// Collective. dw += b^T a for weights [b columns, a columns] (`transposed`), or a^T b; db += the column sums
/// of b, if it is not null.
void add_row_products(const RankSums& sums, const GradientPtr& dw, const GradientPtr& db, const RowOperand& a,
                      const RowOperand& b, bool transposed);

/// Collective. Returns a^T b on the first rank, 0 on others.
[[nodiscard]] TypedRows row_products(const RankSums& sums, const RowOperand& a, const RowOperand& b);

/// Collective. Adds each of `rows` to the rows of a gradient that all ranks share which it has as ids:
/// to[ids[i k + c]] += rows[i] for c < k ids of a row.
void add_rows_by_id(const RankSums& sums, const GradientPtr& to, std::span<const Index> ids,
                    const Tensor& rows);

/// Collective. Adds what was collected over all chunks of a rank's rows to the variables: exact sums are
/// added up over all ranks, rounded, and kept by the first rank, 0 by others; what is no exact sum on any
/// rank is added as it is. Throws InputError if the ranks have collected for different numbers of variables.
void pass_on_sums(const RankSums& sums, OuterGradients& collected);

/// Returns the rows `ids` of a table that all ranks share; as gather_rows(), whose gradient would be a sum
/// over this rank's rows.
[[nodiscard]] Variable gather_shared_rows(const Variable& table, RowIds ids);

}}  // namespace sar
