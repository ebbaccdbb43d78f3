// SPDX-License-Identifier: MIT

// Sums in double precision. Contiguous terms are added in eight lanes (one or two registers), terms of
// separate results elementwise into a row of sums that stays in the cache. The outermost loop is parallel: if
// every element of the outermost dimension has its own results, blocks write them directly; otherwise each of
// at most 256 blocks has its own partial sums, which are added in block order. Bytes moved: the operands
// once.
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/reduce.hpp>
#include <sar/core/simd/bfloat16_lanes.hpp>
#include <sar/core/tensor/broadcast.hpp>

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index grain = 1 << 16;  // elements per block
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

double sum_terms(Terms terms, Index n) {
  double sum = 0;
  sum_row_blocks(
      n, 1,
      [&](Index begin, Index end, double* partial) { *partial += line_sum(terms.at(begin), end - begin); },
      {&sum, 1});
  return sum;
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

void add_rows_to(const real* rows, Index count, Index columns, double* sums) {
  add_strips(rows, count, columns, sums);
}
void add_rows_to(const Bfloat16* rows, Index count, Index columns, double* sums) {
  add_strips(rows, count, columns, sums);
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

double sum_elements(const Tensor& x) {
  return sum_terms({x.data(), nullptr}, x.size());
}

double sum_squares(const Tensor& x) {
  return sum_terms({x.data(), x.data()}, x.size());
}

double sum_products(const Tensor& x, const Tensor& y) {
  require<ShapeError>(x.shape() == y.shape(), "products of tensors of shapes ", x.shape(), " and ",
                      y.shape());
  return sum_terms({x.data(), y.data()}, x.size());
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
SAR_DISPATCH(void, add_rows_to, (const real* rows, Index count, Index columns, double* sums),
             (rows, count, columns, sums));
SAR_DISPATCH(void, add_rows_to, (const Bfloat16* rows, Index count, Index columns, double* sums),
             (rows, count, columns, sums));
SAR_DISPATCH(double, sum_elements, (const Tensor& x), (x));
SAR_DISPATCH(double, sum_squares, (const Tensor& x), (x));
SAR_DISPATCH(double, sum_products, (const Tensor& x, const Tensor& y), (x, y));
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
    if (x.is_bfloat16()) return add_rows_to(x.bfloat16() + begin * columns, end - begin, columns, partial);
    add_rows_to(x.reals().row(begin), end - begin, columns, partial);
  };
  sum_row_blocks(x.num_rows(), columns, add_rows, sums);
  for (Index j = 0; j < columns; ++j)
    out.data()[j] = static_cast<real>((accumulate ? static_cast<double>(out.data()[j]) : 0) + sums[j]);
}

}}  // namespace sar
#endif
