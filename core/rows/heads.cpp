// SPDX-License-Identifier: MIT

// Loop order: rows in parallel blocks of about 2^15 elements, then heads, vectorized over the D columns of a
// head. a [1, H, D] stays in the L1 cache. Bytes moved: x (or its gradient) once; the [N, H] scalars are
// small.
#include <sar/core/error.hpp>
#include <sar/core/rows/heads.hpp>
#include <sar/core/rows/reduce.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/core/simd/sum_of.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>

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
