// SPDX-License-Identifier: MIT

// gather_rows copies row by row in parallel blocks of 2^16 elements: x[ids] is read once, out written once.
//
// scatter_add_rows groups the positions by destination row with a two-level counting sort (RowGroups). Then
// each destination is summed by one thread, in blocks of about equal work; a destination of many rows (hub)
// is split into parts of 2^14 rows that are summed in parallel and added in order. No atomics, no conflicts,
// fixed order.
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/simd/row_sums.hpp>
#include <sar/core/tensor/broadcast.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

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

// Sums in double precision. Contiguous terms are added in eight lanes (one or two registers), terms of
// separate results elementwise into a row of sums that stays in the cache. The outermost loop is parallel: if
// every element of the outermost dimension has its own results, blocks write them directly; otherwise each of
// at most 256 blocks has its own partial sums, which are added in block order. Bytes moved: the operands
// once.

#include <sar/core/isa/isa_begin.hpp>

namespace {

// Bounds on the memory for partial results: the maximum number of blocks and the minimum rows per block.
constexpr Index max_blocks = 256;
constexpr Index min_block_rows = 16;

/// The terms x[i], or x[i] y[i] if y is not null.
struct Terms {
  const real* x;
  const real* y;
  [[nodiscard]] Terms at(Index i) const { return {x + i, y == nullptr ? nullptr : y + i}; }
};

/// Returns the sum of n terms, added in eight interleaved lanes so that the loop vectorizes.
double line_sum(Terms t, Index n) {
  constexpr Index lanes = 8;
  double lane[lanes] = {};
  const Index whole = n - n % lanes;
  if (t.y == nullptr) {
    for (Index i = 0; i < whole; i += lanes)
      for (Index l = 0; l < lanes; ++l) lane[l] += static_cast<double>(t.x[i + l]);
    for (Index i = whole; i < n; ++i) lane[i - whole] += static_cast<double>(t.x[i]);
  } else {
    for (Index i = 0; i < whole; i += lanes)
      for (Index l = 0; l < lanes; ++l)
        lane[l] += static_cast<double>(t.x[i + l]) * static_cast<double>(t.y[i + l]);
    for (Index i = whole; i < n; ++i)
      lane[i - whole] += static_cast<double>(t.x[i]) * static_cast<double>(t.y[i]);
  }
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/// sums[i] += term i
void add_line(Terms t, Index n, double* sums) {
  if (t.y == nullptr) {
    for (Index i = 0; i < n; ++i) sums[i] += static_cast<double>(t.x[i]);
  } else {
    for (Index i = 0; i < n; ++i) sums[i] += static_cast<double>(t.x[i]) * static_cast<double>(t.y[i]);
  }
}

/// Adds the elements [begin, end) of dimension `d`, with all inner dimensions, to their sums. In `loops`,
/// operand a is the result and b the terms; both pointers are at element 0 of dimension d.
void add_terms(const BroadcastLoops& loops, int d, Index begin, Index end, Terms terms, double* sums) {
  // An explicit bound on the recursion depth, which g++ 13 needs when it inlines the recursion.
  constexpr int most_dims = static_cast<int>(std::tuple_size_v<decltype(loops.extent)>);
  if (d + 1 >= std::min(loops.dims, most_dims)) {
    if (loops.stride_a[d] == 0) {
      *sums += line_sum(terms.at(begin), end - begin);
    } else {
      add_line(terms.at(begin), end - begin, sums + begin);
    }
    return;
  }
  for (Index i = begin; i < end; ++i)
    add_terms(loops, d + 1, 0, loops.extent[d + 1], terms.at(i * loops.stride_b[d]),
              sums + i * loops.stride_a[d]);
}

void store(std::span<const double> sums, real* out, bool accumulate) {
  for (Index i = 0; i < std::ssize(sums); ++i)
    out[i] = static_cast<real>(accumulate ? static_cast<double>(out[i]) + sums[i] : sums[i]);
}

void sum_terms_to(const Shape& shape, Terms terms, Tensor& out, bool accumulate) {
  require<ShapeError>(broadcast(out.shape(), shape) == shape, "cannot sum a tensor of shape ", shape, " to ",
                      out.shape());
  const BroadcastLoops loops(out.shape(), shape, shape);
  if (out.size() == 0) return;
  if (shape.size() == 0) {
    if (!accumulate) out.fill(0);
    return;
  }
  const Index rows = loops.extent[0];
  const Index row_cost = shape.size() / rows;
  if (loops.stride_a[0] == 0) {
    std::vector<double> sums(out.size());
    sum_row_blocks(
        rows, row_cost,
        [&](Index begin, Index end, double* partial) { add_terms(loops, 0, begin, end, terms, partial); },
        sums);
    store(sums, out.data(), accumulate);
    return;
  }
  // Each element of the outermost dimension has its own results.
  const Index width = out.size() / rows;
  parallel_for(rows, std::max<Index>(1, grain / row_cost), [&](Index begin, Index end) {
    std::vector<double> sums(width);
    for (Index i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0);
      if (loops.dims == 1) {
        sums[0] = line_sum(terms.at(i), 1);
      } else {
        add_terms(loops, 1, 0, loops.extent[1], terms.at(i * row_cost), sums.data());
      }
      store(sums, out.data() + i * width, accumulate);
    }
  });
}

/// Adds `count` rows of a strip of `width` <= `strip` columns. The strip's sums in `real` stay in registers
/// when the width is a compile-time constant.
constexpr Index strip = 64;
template <class Number, class Width>
void add_strip(const Number* rows, Index count, Index columns, Width width, double* sums) {
  real some[strip] = {};
  for (Index i = 0; i < count; ++i)
    for (Index j = 0; j < width; ++j) some[j] += lanes::number(rows[i * columns + j]);
  for (Index j = 0; j < width; ++j) sums[j] += static_cast<double>(some[j]);
}

template <class Number>
void add_strips(const Number* rows, Index count, Index columns, double* sums) {
  constexpr Index rows_in_real = 32;
  for (Index i = 0; i < count; i += rows_in_real) {
    const Number* from = rows + i * columns;
    const Index some = std::min(rows_in_real, count - i);
    Index j = 0;
    for (; j + strip <= columns; j += strip)
      add_strip(from + j, some, columns, std::integral_constant<Index, strip>(), sums + j);
    if (j < columns) add_strip(from + j, some, columns, columns - j, sums + j);
  }
}

}  // namespace

void add_rows_to(ConstTypedNumbers rows, Index count, Index columns, double* sums) {
  with_type(rows, [&](const auto* numbers) { add_strips(numbers, count, columns, sums); });
}

void sum_row_blocks(Index rows, Index row_cost, FunctionRef<void(Index, Index, double*)> body,
                    std::span<double> out) {
  const Index block =
      std::max({min_block_rows, grain / std::max<Index>(row_cost, 1), (rows + max_blocks - 1) / max_blocks});
  const Index blocks = (rows + block - 1) / block;
  const Index width = std::ssize(out);
  Array<double> partial(blocks * width);
  parallel_for(rows, block, [&](Index begin, Index end) {
    double* sums = partial.data() + begin / block * width;
    std::fill(sums, sums + width, 0.0);
    body(begin, end, sums);
  });
  std::fill(out.begin(), out.end(), 0.0);
  for (Index b = 0; b < blocks; ++b)
    for (Index j = 0; j < width; ++j) out[j] += partial[b * width + j];
}

double sum_squares(const Tensor& x) {
  const Terms squares{x.data(), x.data()};
  double sum = 0;
  sum_row_blocks(
      x.size(), 1,
      [&](Index begin, Index end, double* partial) { *partial += line_sum(squares.at(begin), end - begin); },
      {&sum, 1});
  return sum;
}

void sum_to(const Tensor& x, Tensor& out, bool accumulate) {
  sum_terms_to(x.shape(), {x.data(), nullptr}, out, accumulate);
}

void sum_products_to(const Tensor& x, const Tensor& y, Tensor& out, bool accumulate) {
  require<ShapeError>(x.shape() == y.shape(), "products of tensors of shapes ", x.shape(), " and ",
                      y.shape());
  sum_terms_to(x.shape(), {x.data(), y.data()}, out, accumulate);
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, sum_row_blocks,
             (Index rows, Index row_cost, FunctionRef<void(Index, Index, double*)> body,
              std::span<double> out),
             (rows, row_cost, body, out));
SAR_DISPATCH(void, add_rows_to, (ConstTypedNumbers rows, Index count, Index columns, double* sums),
             (rows, count, columns, sums));
SAR_DISPATCH(double, sum_squares, (const Tensor& x), (x));
SAR_DISPATCH(void, sum_to, (const Tensor& x, Tensor& out, bool accumulate), (x, out, accumulate));
SAR_DISPATCH(void, sum_products_to, (const Tensor& x, const Tensor& y, Tensor& out, bool accumulate),
             (x, y, out, accumulate));

#if SAR_COMPILED_ONCE

namespace sar { inline namespace SAR_PRECISION {

void sum_columns(const TypedRows& x, Tensor& out, bool accumulate) {
  const Index columns = x.row_size();
  require<ShapeError>(out.shape() == Shape{columns}, "sums of ", columns, " columns in a tensor of shape ",
                      out.shape());
  std::vector<double> sums(static_cast<std::size_t>(columns));
  const auto add_rows = [&](Index begin, Index end, double* partial) {
    add_rows_to(x.numbers(begin), end - begin, columns, partial);
  };
  sum_row_blocks(x.num_rows(), columns, add_rows, sums);
  for (Index j = 0; j < columns; ++j)
    out.data()[j] = static_cast<real>((accumulate ? static_cast<double>(out.data()[j]) : 0) + sums[j]);
}
}}  // namespace sar

#endif

// Loop order: rows in parallel blocks of about 2^15 elements, then heads, vectorized over the D columns of a
// head. a [1, H, D] stays in the L1 cache. Bytes moved: x (or its gradient) once; the [N, H] scalars are
// small.

#include <sar/core/isa/isa_begin.hpp>

namespace {

struct Heads {
  Index rows, heads, columns;

  /// Checks the shapes: x [N, H, D], scalars [N, H], a [1, H, D] or undefined.
  Heads(const Shape& x, const Shape& scalars, const Shape& a) : rows(0), heads(0), columns(0) {
    require<ShapeError>(
        x.dims() == 3 && scalars == Shape{x[0], x[1]} && (a.dims() == 0 || a == Shape{1, x[1], x[2]}),
        "head_dots: rows of shape ", x, ", a vector per head of shape ", a, ", results of shape ", scalars);
    rows = x[0], heads = x[1], columns = x[2];
  }
  [[nodiscard]] Index grain() const { return std::max<Index>(1, (1 << 15) / (heads * columns + 1)); }
};

}  // namespace

void head_dots(const TypedRows& x, const Tensor& a, Tensor& out) {
  const Heads n(x.shape(), out.shape(), a.shape());
  parallel_for(n.rows, n.grain(), [&](Index begin, Index end) {
    RowReader<> of_x(x);
    for (Index i = begin; i < end; ++i) {
      const real* mine = of_x.row(i);
      for (Index h = 0; h < n.heads; ++h, mine += n.columns) {
        const real* other = a.data() + h * n.columns;
        out.row(i)[h] = sum_of(n.columns, [&](Index j) { return mine[j] * other[j]; });
      }
    }
  });
}

void head_dots_backward_x(const Tensor& grad, const Tensor& a, Tensor& out, bool accumulate) {
  const Heads n(out.shape(), grad.shape(), a.shape());
  parallel_for(n.rows, n.grain(), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      for (Index h = 0; h < n.heads; ++h) {
        const real g = grad.row(i)[h];
        const real* from = a.data() + h * n.columns;
        real* to = out.row(i) + h * n.columns;
        if (accumulate)
          for (Index j = 0; j < n.columns; ++j) to[j] += g * from[j];
        else
          for (Index j = 0; j < n.columns; ++j) to[j] = g * from[j];
      }
  });
}

void head_dots_backward_a(const Tensor& grad, const TypedRows& x, std::span<double> out) {
  const Heads n(x.shape(), grad.shape(), {});
  sum_row_blocks(
      n.rows, n.heads * n.columns,
      [&](Index begin, Index end, double* partial) {
        RowReader<> of_x(x);
        for (Index i = begin; i < end; ++i) {
          const real* from = of_x.row(i);
          double* to = partial;
          for (Index h = 0; h < n.heads; ++h, from += n.columns, to += n.columns) {
            const real g = grad.row(i)[h];
            for (Index j = 0; j < n.columns; ++j) to[j] += static_cast<double>(g * from[j]);
          }
        }
      },
      out);
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, head_dots, (const TypedRows& x, const Tensor& a, Tensor& out), (x, a, out));
SAR_DISPATCH(void, head_dots_backward_x, (const Tensor& grad, const Tensor& a, Tensor& out, bool accumulate),
             (grad, a, out, accumulate));
SAR_DISPATCH(void, head_dots_backward_a, (const Tensor& grad, const TypedRows& x, std::span<double> out),
             (grad, x, out));
