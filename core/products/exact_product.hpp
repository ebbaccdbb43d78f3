// SPDX-License-Identifier: MIT

/// Sums over the rows of all ranks whose bits do not depend on how the rows are distributed.
#pragma once

#include <sar/core/numbers.hpp>
#include <sar/core/products/row_operand.hpp>
#include <sar/core/threads/rank_sums.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Collective, within RankSums::agree. Returns a^T b [k, m] for the rows of all ranks, a [n, k], b [n, m],
/// and with `column_sums` behind it one more row, the column sums of b. Rows of type bfloat16 are refused.
///
/// The numbers of a column are rounded to multiples of 2^-21 of the power of two above its largest magnitude
/// on any rank (float), or split into three such parts (double). Products of these integers are added in
/// double precision without rounding, 1,024 rows at a time, and the sums of these rows in two doubles on a
/// common grid. An error of a sum is at most 2^-20 (float) or 2^-60 (double) of the sum of the largest
/// magnitudes. A column with an infinite number or NaN gives NaN.
[[nodiscard]] std::vector<double> exact_products(const RankSums& ranks, const RowOperand& a,
                                                 const RowOperand& b, bool column_sums);

/// Collective, within RankSums::agree. Returns the column sums of x over the rows of all ranks, ExactSums by
/// one pass over x.
[[nodiscard]] std::vector<double> exact_column_sums(const RankSums& ranks, const RowOperand& x);

/// Local. Returns a^T b [k, m] as ExactSums of products that are rounded to `real`, and behind them, with
/// `column_sums`, the column sums of b; `a` may be null then. Unlike exact_products() it needs no largest
/// magnitudes of all rows, so that the sums of chunks of the rows can be added. The error of a product is
/// that of one rounding; sums are exact as far as ExactSum is.
[[nodiscard]] std::vector<ExactSum> exact_products_of_chunk(const RowOperand* a, const RowOperand& b,
                                                            bool column_sums);
}}  // namespace sar
