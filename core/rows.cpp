#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/rows.hpp>

#include <algorithm>

#include <sar/core/isa_begin.hpp>

namespace {

constexpr Index grain = 1 << 16;  // elements per block

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

/// Positions grouped by the row they go to, in ascending order within a group: counting sort.
struct RowGroups {
  Array<Index> begin;      // rows + 1
  Array<Index> positions;  // begin[r] .. begin[r + 1] go to row r

  RowGroups(std::span<const Index> ids, Index rows) : begin(rows + 1, 0), positions(ids.size()) {
    for (const Index id : ids) ++begin[id];
    Index first = 0;
    for (Index& count : begin) first += std::exchange(count, first);
    for (std::size_t i = 0; i < ids.size(); ++i) positions[begin[ids[i]]++] = static_cast<Index>(i);
    std::rotate(begin.begin(), begin.end() - 1, begin.end());  // each begin has advanced to the next one
    begin.front() = 0;
  }
};

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
  // As many destinations per block as receive a block's worth of rows on average.
  const Index block = std::max<Index>(1, rows_per_block(width) * rows / (n + rows));
  parallel_for(rows, block, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      for (Index k = groups.begin[r]; k < groups.begin[r + 1]; ++k)
        write_row(x.row(groups.positions[k]), out.row(r), width, true);
  });
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

#include <sar/core/isa_end.hpp>

SAR_DISPATCH(void, gather_rows, (const Tensor& x, std::span<const Index> ids, Tensor& out, bool accumulate),
             (x, ids, out, accumulate));
SAR_DISPATCH(void, scatter_add_rows, (const Tensor& x, std::span<const Index> ids, Tensor& out),
             (x, ids, out));
SAR_DISPATCH(void, copy_columns,
             (const Tensor& from, Index from_begin, Tensor& to, Index to_begin, Index count, bool accumulate),
             (from, from_begin, to, to_begin, count, accumulate));
