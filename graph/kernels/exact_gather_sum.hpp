// SPDX-License-Identifier: MIT

/// Sums of gathered rows whose bits do not depend on the order of the edges, nor on the stages and ranks they
/// are divided among:
///
///     sum[row(i)] = sum over k in [begin[i], end[i]) of c(k) * x[col[k]]
///     c(k) = weight(k, head) * col_scale[col[k]] * row_scale[row(i)], rounded to `real` after each factor
///
/// in two doubles per number (ExactSum).
///
/// Bytes moved: the gathered rows, as in gather_sum.hpp; 32 bytes for each number of a result in ExactSums
/// (read and written), or sizeof(real). Per gathered number: 8 operations in double precision instead of one
/// in `real`.
#pragma once

#include <sar/core/exact_sum.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Adds the sums of `task` to `sums` [rows, width], or, if that is null, writes them to task.out, rounded
/// once from base + sum, where base is the number in task.out with task.accumulate and 0 without. `weight`
/// has `heads` numbers for each edge, each for width / heads columns. The task's bfloat16 operands must be
/// null. Blocks of rows run in parallel.
void exact_gather_sum(const GatherSum& task, Index heads, ExactSum* sums);

}}  // namespace sar
