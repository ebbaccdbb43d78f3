// SPDX-License-Identifier: MIT

/// Sums of gathered rows, the core of all linear aggregations and of their backward passes:
///
///     out[row(i)] (+)= row_scale[row(i)] * sum over k in [begin[i], end[i]) of
///                          weight(k) * col_scale[other[k]] * x[other[k]]
///
/// Bytes moved: edges * width * the bytes of a number of gathered rows dominate. In addition, 4 bytes per
/// edge of indices (and a real for each of weight and col_scale, if given) and one write (and one read, when
/// adding) of each output row. A tile of columns is summed in registers, and rows are prefetched several
/// edges ahead. The kernel is memory bound; bench/aggregate.cpp compares it with a STREAM triad.
///
/// The accumulator says how terms are added:
///
///     rounded   up to 1,024 terms in `real`, and these sums in double precision
///     exact     in two doubles per number (ExactSum): the bits depend neither on the order of the edges, nor
///               on the stages and ranks that they are divided among. A term is
///               weight(k, head) * col_scale[other[k]] * row_scale[row(i)], rounded to `real` after each
///               factor, times x[other[k]] in double precision: 8 operations per number instead of one
///
/// Rows with 65,536 edges or more are split into parts of 16,384 that run in parallel (EdgeParts). These
/// limits are larger than the 1,024 edges of other kernels, whose parts are there for precision: here, a part
/// costs a row of doubles, so that where nodes have 1,500 edges, parts of 1,024 would take 4 times the memory
/// of the result.
#pragma once

#include <sar/config.hpp>
#include <sar/core/tensor/typed_numbers.hpp>
#include <sar/graph/kernels/edge_walk.hpp>

namespace sar { inline namespace SAR_PRECISION {

struct GatherSum {
  EdgeRows edges = {};  ///< row(i) is the output row; other null: the gathered row is edge(k)
  const real* weight = nullptr;              ///< [edges, heads]; null: 1
  const real* col_scale = nullptr;           ///< per gathered row (before `offset`); null: 1
  const real* row_scale = nullptr;           ///< per output row; null: 1
  ConstTypedNumbers x = {};                  ///< [x_rows, width], reals or bfloat16; exact: reals
  Index x_rows = 0;
  const Index* x_row = nullptr;  ///< [x_rows] index in x of each gathered row; null: i
  /// [rows, width]: reals, bfloat16 (rounded when they are written), or exact sums, to which those of an
  /// exact sum are added.
  TypedNumbers out = {};
  Index width = 0;
  bool accumulate = false;  ///< add to out instead of overwriting it
  Accumulator accumulator = Accumulator::rounded;
  Index heads = 1;  ///< exact: a divisor of width; head h has the columns [h, h + 1) * width / heads
};

/// Runs the sums, with blocks of rows in parallel. The order of additions in a row does not depend on the
/// threads.
void gather_sum(const GatherSum& task);
}}  // namespace sar
