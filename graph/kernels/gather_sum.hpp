/// Sums of gathered rows, the work of every linear aggregation and of its backward pass:
///
///     out[row(i)] (+)= row_scale[row(i)] * sum of  weight(k) * col_scale[col[k]] * x[col[k]],
///                                          k in [begin[i], end[i])
///
/// Memory traffic: edges * width * sizeof(real) bytes of gathered rows, which dominate, plus 4 bytes per edge
/// of indices (and a real for each of weight and col_scale, where given) and one write
/// (and read, when adding) of each output row. A row of columns is summed in registers, rows are requested
/// some edges ahead. Bound by memory: bench/aggregate.cpp compares with a STREAM triad, docs/performance.md
/// has figures; rows of hubs come from cache.
///
/// Up to 1,024 terms are added in `real`, sums of these in double precision. A row of 65,536 edges or more is
/// divided into parts that run in parallel.
#pragma once

#include <sar/config.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

struct GatherSum {
  Index num_rows = 0;
  const local_index* begin = nullptr;        ///< [num_rows] first edge of each row
  const local_index* end = nullptr;          ///< [num_rows] one past the last
  const local_index* before = nullptr;       ///< [num_rows] edges of the rows before each; null: begin
  const local_index* rows = nullptr;         ///< output row of each; null: i itself
  const local_index* col = nullptr;          ///< gathered row per edge; null: that of the edge's number
  Index col_offset = 0;                      ///< subtracted from col: x starts at this row
  const real* weight = nullptr;              ///< per edge number; null: 1
  const local_index* position_of = nullptr;  ///< position in the shard of each k; null: k
  Index first_edge = 0;                      ///< the number of the edge at position 0
  const real* col_scale = nullptr;           ///< per gathered row (before col_offset); null: 1
  const real* row_scale = nullptr;           ///< per output row; null: 1
  const real* x = nullptr;                   ///< [x_rows, width]
  Index x_rows = 0;
  const Index* x_row = nullptr;     ///< [x_rows] where each gathered row is in x, of any size; null: i itself
  real* out = nullptr;              ///< [rows, width]
  double* out_in_double = nullptr;  ///< instead of out: every addition in double precision
  Index width = 0;
  bool accumulate = false;  ///< add to out instead of overwriting it
};

/// Runs the sums, row blocks in parallel; the order of additions of a row does not depend on the threads.
void gather_sum(const GatherSum& task);

/// body(first, last) over rows [0, num_rows) in blocks of about equal numbers of edges plus rows; `offsets`
/// ascends.
void for_row_blocks(const local_index* offsets, Index num_rows, Index bytes_per_edge,
                    FunctionRef<void(Index first, Index last)> body);

}  // namespace sar
