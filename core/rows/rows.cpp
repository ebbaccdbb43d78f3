// SPDX-License-Identifier: MIT

// gather_rows copies row by row in parallel blocks of 2^16 elements: x[ids] is read once, out written once.
//
// scatter_add_rows groups the positions by destination row with a two-level counting sort (RowGroups). Then
// each destination is summed by one thread, in blocks of about equal work; a destination of many rows (hub)
// is split into parts of 2^14 rows that are summed in parallel and added in order. No atomics, no conflicts,
// fixed order.
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/row_blocks.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <utility>

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index grain = 1 << 16;  // elements per parallel block

Index rows_per_block(Index row_size) {
  return std::max<Index>(1, grain / std::max<Index>(row_size, 1));
}

void check_ids(std::span<const Index> ids, Index rows) {
  parallel_for(static_cast<Index>(ids.size()), grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const Index id = ids[i];
      require<ShapeError>(0 <= id && id < rows, "row number ", id, " at position ", i, " for a tensor of ",
                          rows, " rows");
    }
  });
}

void write_row(const real* from, real* to, Index n, bool accumulate) {
  if (accumulate) {
    for (Index j = 0; j < n; ++j) to[j] += from[j];
  } else {
    std::copy(from, from + n, to);
  }
}

/// Positions grouped by destination row, in ascending order within a group. Two counting sorts: first by
/// range of rows (parallel over chunks of positions), then by row (parallel over ranges).
struct RowGroups {
  Array<Index> begin;      // rows + 1 elements
  Array<Index> positions;  // positions[begin[r]] to positions[begin[r + 1]] go to row r

  RowGroups(std::span<const Index> ids, Index rows) : begin(rows + 1), positions(ids.size()) {
    const auto n = static_cast<Index>(ids.size());
    const Index chunks = std::clamp<Index>(n / grain, 1, 64);
    const Index ranges = chunks == 1 ? 1 : std::min<Index>(rows, 256);
    const auto first_row = [&](Index range) { return range * rows / ranges; };
    const auto range_of = [&](Index row) { return (row * ranges + ranges - 1) / rows; };
    const auto first_position = [&](Index chunk) { return chunk * n / chunks; };

    Array<Index> place(chunks * ranges, 0);  // next index to write, for each chunk and range
    parallel_for(chunks, 1, [&](Index chunk, Index) {
      for (Index i = first_position(chunk); i < first_position(chunk + 1); ++i)
        ++place[chunk * ranges + range_of(ids[i])];
    });
    Array<Index> range_begin(ranges + 1, n);
    Index next = 0;
    for (Index range = 0; range < ranges; ++range) {
      range_begin[range] = next;
      for (Index chunk = 0; chunk < chunks; ++chunk)
        next += std::exchange(place[chunk * ranges + range], next);
    }
    Array<Index> by_range(n);
    parallel_for(chunks, 1, [&](Index chunk, Index) {
      for (Index i = first_position(chunk); i < first_position(chunk + 1); ++i)
        by_range[place[chunk * ranges + range_of(ids[i])]++] = i;
    });
    parallel_for(ranges, 1, [&](Index range, Index) {
      sort(ids, {by_range.data() + range_begin[range], by_range.data() + range_begin[range + 1]},
           range_begin[range], first_row(range), first_row(range + 1));
    });
    begin[rows] = n;
  }

 private:
  /// Sorts the positions of rows [first, last) into positions[place ...].
  void sort(std::span<const Index> ids, std::span<const Index> of_range, Index place, Index first,
            Index last) {
    std::fill(begin.data() + first, begin.data() + last, Index{0});
    for (const Index i : of_range) ++begin[ids[i]];
    Index next = place;
    for (Index row = first; row < last; ++row) next += std::exchange(begin[row], next);
    for (const Index i : of_range) positions[begin[ids[i]]++] = i;
    for (Index row = last - 1; row > first; --row) begin[row] = begin[row - 1];  // shift by one
    if (first < last) begin[first] = place;
  }
};

constexpr Index block_terms = 1024;    // terms added in `real`; the sums of these in double precision
constexpr Index hub_terms = 1 << 16;   // minimum terms of a row that is split
constexpr Index part_terms = 1 << 14;  // terms per part

/// sums += sum of the rows x[positions[k]], k in [first, last)
void add_blocks(const Tensor& x, const Index* positions, Index first, Index last, double* sums) {
  const Index width = x.row_size();
  Array<real> block(width);
  for (Index k = first; k < last; k += block_terms) {
    std::fill(block.begin(), block.end(), real{0});
    for (Index i = k; i < std::min(last, k + block_terms); ++i)
      write_row(x.row(positions[i]), block.data(), width, true);
    for (Index j = 0; j < width; ++j) sums[j] += static_cast<double>(block[j]);
  }
}

void add_sums(const double* sums, Index width, real* out) {
  for (Index j = 0; j < width; ++j) out[j] = static_cast<real>(static_cast<double>(out[j]) + sums[j]);
}

/// out += sum of the rows x[positions[k]], k in [first, last), single-threaded.
void add_terms(const Tensor& x, const Index* positions, Index first, Index last, real* out) {
  const Index width = x.row_size();
  if (last - first <= block_terms) {
    for (Index k = first; k < last; ++k) write_row(x.row(positions[k]), out, width, true);
    return;
  }
  Array<double> sums(width, 0);
  add_blocks(x, positions, first, last, sums.data());
  add_sums(sums.data(), width, out);
}

/// The same for a hub: parts of part_terms rows in parallel.
void add_terms_of_hub(const Tensor& x, const Index* positions, Index first, Index last, real* out) {
  const Index width = x.row_size();
  const Index parts = (last - first + part_terms - 1) / part_terms;
  Array<double> sums(parts * width, 0);
  parallel_for(parts, 1, [&](Index part, Index) {
    const Index begin = first + part * part_terms;
    add_blocks(x, positions, begin, std::min(last, begin + part_terms), sums.data() + part * width);
  });
  for (Index part = 1; part < parts; ++part)
    for (Index j = 0; j < width; ++j) sums[j] += sums[part * width + j];
  add_sums(sums.data(), width, out);
}

}  // namespace

void gather_rows(const Tensor& x, std::span<const Index> ids, Tensor& out, bool accumulate) {
  const auto n = static_cast<Index>(ids.size());
  require<ShapeError>(x.defined() && out.shape() == x.shape().with_rows(n), "cannot gather ", n,
                      " rows of a tensor of shape ", x.shape(), " into one of shape ", out.shape());
  check_ids(ids, x.num_rows());
  const Index width = x.row_size();
  parallel_for(n, rows_per_block(width), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) write_row(x.row(ids[i]), out.row(i), width, accumulate);
  });
}

void scatter_add_rows(const Tensor& x, std::span<const Index> ids, Tensor& out) {
  const auto n = static_cast<Index>(ids.size());
  require<ShapeError>(out.defined() && x.shape() == out.shape().with_rows(n),
                      "cannot scatter a tensor of shape ", x.shape(), " with ", n,
                      " row numbers into one of shape ", out.shape());
  check_ids(ids, out.num_rows());
  const Index width = x.row_size();
  const Index rows = out.num_rows();
  if (n == 0) return;
  const RowGroups groups(ids, rows);
  const Index* positions = groups.positions.data();
  const auto is_hub = [&](Index r) { return groups.begin[r + 1] - groups.begin[r] >= hub_terms; };
  const auto work_before = [&](Index r) { return groups.begin[r] + r; };
  for_blocks_of_work(rows, n + rows, rows_per_block(width), work_before, [&](Index first, Index last) {
    for (Index r = first; r < last; ++r)
      if (!is_hub(r)) add_terms(x, positions, groups.begin[r], groups.begin[r + 1], out.row(r));
  });
  if (n < hub_terms) return;
  for (Index r = 0; r < rows; ++r)
    if (is_hub(r)) add_terms_of_hub(x, positions, groups.begin[r], groups.begin[r + 1], out.row(r));
}

void copy_columns(const Tensor& from, Index from_begin, Tensor& to, Index to_begin, Index count,
                  bool accumulate) {
  require<ShapeError>(from.defined() && to.defined(), "columns of an undefined tensor");
  const Index from_width = from.shape()[from.shape().dims() - 1];
  const Index to_width = to.shape()[to.shape().dims() - 1];
  require<ShapeError>(count >= 0 && 0 <= from_begin && from_begin + count <= from_width && 0 <= to_begin &&
                          to_begin + count <= to_width,
                      "columns ", from_begin, " to ", from_begin + count, " of shape ", from.shape(),
                      " into columns ", to_begin, " to ", to_begin + count, " of shape ", to.shape());
  if (count == 0) return;
  const Index rows = from.size() / from_width;
  require<ShapeError>(rows == to.size() / to_width, "columns of shape ", from.shape(),
                      " do not fit into shape ", to.shape());
  parallel_for(rows, rows_per_block(count), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      write_row(from.data() + i * from_width + from_begin, to.data() + i * to_width + to_begin, count,
                accumulate);
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, gather_rows, (const Tensor& x, std::span<const Index> ids, Tensor& out, bool accumulate),
             (x, ids, out, accumulate));
SAR_DISPATCH(void, scatter_add_rows, (const Tensor& x, std::span<const Index> ids, Tensor& out),
             (x, ids, out));
SAR_DISPATCH(void, copy_columns,
             (const Tensor& from, Index from_begin, Tensor& to, Index to_begin, Index count, bool accumulate),
             (from, from_begin, to, to_begin, count, accumulate));
