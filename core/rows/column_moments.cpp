// SPDX-License-Identifier: MIT

// Column moments in chunks of rows that fit into the L2 cache. Per chunk: one pass for the means, one for the
// squared deviations, both row by row and vectorized over columns. The moments of chunks are merged within a
// block, those of at most 64 blocks in block order. Bytes moved: x once.
#include <sar/core/rows/column_moments.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/core/simd/bfloat16_lanes.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index max_blocks = 64;  // each has two doubles per column
constexpr Index min_block_rows = 256;
constexpr Index cached_elements = 1 << 15;  // elements of a chunk of rows, which is read twice

/// Two passes over a chunk of rows: means, then squared deviations from them.
template <class Number>
ColumnMoments moments_of_chunk(const TypedRows& x, Index begin, Index end) {
  RowReader<Number> from(x);
  const Index columns = x.row_size();
  ColumnMoments chunk{static_cast<double>(end - begin), std::vector<double>(columns),
                      std::vector<double>(columns)};
  double* mean = chunk.mean.data();
  double* m2 = chunk.m2.data();
  for (Index i = begin; i < end; ++i) {
    const Number* row = from.row(i);
    for (Index j = 0; j < columns; ++j) mean[j] += lanes::number(row[j]);
  }
  for (Index j = 0; j < columns; ++j) mean[j] /= chunk.count;
  for (Index i = begin; i < end; ++i) {
    const Number* row = from.row(i);
    for (Index j = 0; j < columns; ++j) {
      const double deviation = lanes::number(row[j]) - mean[j];
      m2[j] += deviation * deviation;
    }
  }
  return chunk;
}

}  // namespace

ColumnMoments column_moments(const TypedRows& x) {
  const Index columns = x.row_size();
  const Index chunk_rows = std::max<Index>(8, cached_elements / std::max<Index>(columns, 1));
  const auto moments = [&](Index begin, Index end) {
    return x.is_bfloat16() ? moments_of_chunk<Bfloat16>(x, begin, end)
                           : moments_of_chunk<real>(x, begin, end);
  };
  ColumnMoments zero{0, std::vector<double>(columns), std::vector<double>(columns)};
  const Index block_rows = std::max(min_block_rows, (x.num_rows() + max_blocks - 1) / max_blocks);
  return parallel_reduce(
      x.num_rows(), block_rows, zero,
      [&](Index begin, Index end) {
        ColumnMoments block = zero;
        for (Index first = begin; first < end; first += chunk_rows)
          block.merge(moments(first, std::min(end, first + chunk_rows)));
        return block;
      },
      [](ColumnMoments sum, const ColumnMoments& block) {
        sum.merge(block);
        return sum;
      });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(ColumnMoments, column_moments, (const TypedRows& x), (x));

#if SAR_COMPILED_ONCE
namespace sar { inline namespace SAR_PRECISION {

void ColumnMoments::merge(const ColumnMoments& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const double total = count + other.count;
  for (Index j = 0; j < std::ssize(mean); ++j) {
    const double delta = other.mean[j] - mean[j];
    mean[j] += delta * (other.count / total);
    m2[j] += other.m2[j] + delta * delta * (count * other.count / total);
  }
  count = total;
}

}}  // namespace sar
#endif
