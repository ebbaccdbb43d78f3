// SPDX-License-Identifier: MIT

/// Sums of gathered rows, the core of all linear aggregations and of their backward passes:
///
///     out[row(i)] (+)= row_scale[row(i)] * sum over k in [begin[i], end[i]) of
///                          weight(k) * col_scale[col[k]] * x[col[k]]
///
/// Bytes moved: edges * width * sizeof(real) bytes of gathered rows dominate. In addition, 4 bytes per edge
/// of indices (and a real for each of weight and col_scale, if given) and one write (and one read, when
/// adding) of each output row. A tile of columns is summed in registers, and rows are prefetched several
/// edges ahead. The kernel is memory bound; bench/aggregate.cpp compares it with a STREAM triad.
///
/// Up to 1,024 terms are summed in `real`, and these sums are added in double precision. Rows with 65,536
/// edges or more are split into parts that run in parallel.
#pragma once

#include <sar/config.hpp>
#include <sar/core/half.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/shard/graph_shard.hpp>


namespace sar { inline namespace SAR_PRECISION {

struct GatherSum {
  Index num_rows = 0;
  const local_index* begin = nullptr;        ///< [num_rows] first edge of each row
  const local_index* end = nullptr;          ///< [num_rows] one past the last
  const local_index* before = nullptr;       ///< [num_rows] number of edges before each row; null: begin
  const local_index* rows = nullptr;         ///< output row of each row; null: i
  const local_index* col = nullptr;          ///< gathered row per edge; null: the index of the edge
  Index col_offset = 0;                      ///< subtracted from col: the first row of x
  const real* weight = nullptr;              ///< per edge index; null: 1
  const local_index* position_of = nullptr;  ///< position in the shard of each k; null: k
  Index first_edge = 0;                      ///< index of the edge at position 0
  const real* col_scale = nullptr;           ///< per gathered row (before col_offset); null: 1
  const real* row_scale = nullptr;           ///< per output row; null: 1
  const real* x = nullptr;                   ///< [x_rows, width]
  const Bfloat16* x_bfloat16 = nullptr;      ///< the same in bfloat16, in place of x
  Index x_rows = 0;
  const Index* x_row = nullptr;     ///< [x_rows] index in x of each gathered row; null: i
  real* out = nullptr;              ///< [rows, width]
  Bfloat16* out_bfloat16 = nullptr;  ///< replaces out: sums in `real`, rounded when they are written
  Index width = 0;
  bool accumulate = false;  ///< add to out instead of overwriting it
};

/// Runs the sums, with blocks of rows in parallel. The order of additions in a row does not depend on the
/// threads.
void gather_sum(const GatherSum& task);

/// Calls body(first, last) in parallel for blocks of the rows [0, num_rows) with about equal numbers of edges
/// plus rows. `offsets` ascend.
void for_row_blocks(const local_index* offsets, Index num_rows, Index bytes_per_edge,
                    FunctionRef<void(Index first, Index last)> body);

}}  // namespace sar
