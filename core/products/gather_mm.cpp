// SPDX-License-Identifier: MIT

// gather_mm and gather_mm_nt: parallel blocks of 256 positions of the grouped rows. Within a block, the rows
// of each type are copied to a buffer (unless they are contiguous), multiplied with the type's matrix by the
// kernel of product.hpp, and the results are copied (or added) to their rows. The matrix is packed for each
// run of rows of one type, or read where it lies.
//
// gather_mm_tn: parallel over types (and tiles of columns of a, if there are fewer than 64 types); each task
// adds the products of 256 rows at a time to its tile of out. Sorted types with many rows each use matmul_tn.
//
// Bytes moved: x and out once, plus one pass through the cached buffers; w once per block of rows that uses
// it.
#include <sar/core/error.hpp>
#include <sar/core/products/gather_mm.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/core/products/right_operand.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index gathered_rows = 256;  // rows gathered at a time

Index num_types(const TypeGroups& groups) {
  return static_cast<Index>(groups.begin.size()) - 1;
}

Index row_number(const TypeGroups& groups, Index position) {
  return groups.rows.empty() ? position : groups.rows[position];
}

/// A matrix inside a larger array.
struct Part {
  MatrixView matrix;
  const real* end;  ///< end of the array

  [[nodiscard]] Part columns(Index first, Index count) const {
    return {matrix.column_range(first, first + count), end};
  }
  [[nodiscard]] Index readable_behind() const {
    return end - (matrix.data + (matrix.rows - 1) * matrix.row_step + matrix.cols);
  }
};

/// The matrices of w: per type, `blocks` matrices [rows, cols] on the diagonal.
struct Blocks {
  Index blocks, rows, cols;

  explicit Blocks(const Shape& w)
      : blocks(w.dims() == 4 ? w[1] : 1), rows(w[w.dims() - 2]), cols(w[w.dims() - 1]) {}
  [[nodiscard]] Part operator()(const Tensor& w, Index type, Index block) const {
    return {{w.row(type) + block * rows * cols, rows, cols, cols, 1}, w.data() + w.size()};
  }
};

/// Checks the shapes: x [n, in], y [n, out].
void check(const Tensor& x, const Tensor& y, const Tensor& w, const TypeGroups& groups) {
  const bool matrices = w.shape().dims() == 3 || w.shape().dims() == 4;
  const Index blocks = w.shape().dims() == 4 ? w.shape()[1] : 1;
  require<ShapeError>(matrices && x.shape().dims() == 2 && y.shape().dims() == 2 &&
                          x.num_rows() == y.num_rows() && groups.begin.back() == x.num_rows() &&
                          w.num_rows() == num_types(groups) &&
                          x.row_size() == blocks * w.shape()[w.shape().dims() - 2] &&
                          y.row_size() == blocks * w.shape()[w.shape().dims() - 1],
                      "gather_mm: rows of shapes ", x.shape(), " and ", y.shape(), ", matrices ", w.shape(),
                      " for ", groups.begin.back(), " rows of ", num_types(groups), " types");
}

/// Rows of a tensor as a matrix: copied to a buffer unless they are contiguous.
class GatheredRows {
 public:
  Part operator()(const Tensor& x, const TypeGroups& groups, Index first, Index last) {
    const Index width = x.row_size();
    if (groups.rows.empty()) return {{x.row(first), last - first, width, width, 1}, x.data() + x.size()};
    constexpr Index behind = 64 / static_cast<Index>(sizeof(real));  // readable numbers beyond the end
    buffer_.resize(static_cast<std::size_t>((last - first) * width + behind), real{0});
    for (Index i = first; i < last; ++i)
      std::copy_n(x.row(row_number(groups, i)), width, buffer_.data() + (i - first) * width);
    return {{buffer_.data(), last - first, width, width, 1}, buffer_.data() + buffer_.size()};
  }

 private:
  Array<real> buffer_;
};

/// Products of blocks of rows with one matrix each, single-threaded.
class RowProducts {
 public:
  explicit RowProducts(ProductMethod method) : right_(method) {}

  /// out (+)= x w; row i of out is at out + i * stride.
  void multiply(const MatrixView& x, const Part& w, real* out, Index stride, bool accumulate) {
    right_.pack_or_borrow(w.matrix, w.readable_behind());
    right_.multiply(x, {out, stride, accumulate ? out : nullptr, stride});
  }

  /// out (+)= x w^T. For few rows, packs x instead of w and computes out^T = w x^T.
  void multiply_transposed(const MatrixView& x, const Part& w, real* out, Index stride, bool accumulate) {
    constexpr Index few = 8;
    if (x.rows > few) {
      right_.pack(w.matrix.transposed());
      return right_.multiply(x, {out, stride, accumulate ? out : nullptr, stride});
    }
    right_.pack(x.transposed());
    transposed_.resize(static_cast<std::size_t>(w.matrix.rows * x.rows));
    right_.multiply(w.matrix, {transposed_.data(), x.rows});
    for (Index i = 0; i < x.rows; ++i)
      for (Index j = 0; j < w.matrix.rows; ++j) {
        real& y = out[i * stride + j];
        y = transposed_[j * x.rows + i] + (accumulate ? y : 0);
      }
  }

 private:
  RightOperand right_;
  Array<real> transposed_;
};

/// out[i] (+)= x[i] m_t for every row; multiply(products, rows of x, type, y, accumulate) computes y (+)= x
/// m_t.
template <class Multiply>
void products(const Tensor& x, const TypeGroups& groups, Tensor& out, bool accumulate,
              const Multiply& multiply) {
  const ProductMethod method = product_method();
  const Index width = out.row_size();
  parallel_for(x.num_rows(), gathered_rows, [&](Index begin, Index end) {
    GatheredRows gathered;
    RowProducts of_rows(method);
    Array<real> y;
    auto type = std::upper_bound(groups.begin.begin(), groups.begin.end(), begin) - groups.begin.begin() - 1;
    for (Index i = begin, last = begin; i < end; i = last, ++type) {
      last = std::min(end, groups.begin[type + 1]);
      if (i == last) continue;
      const MatrixView rows = gathered(x, groups, i, last).matrix;
      if (groups.rows.empty()) {
        multiply(of_rows, rows, type, out.row(i), accumulate);
        continue;
      }
      y.resize(static_cast<std::size_t>((last - i) * width));
      multiply(of_rows, rows, type, y.data(), false);
      for (Index k = i; k < last; ++k) {
        real* to = out.row(row_number(groups, k));
        const real* from = y.data() + (k - i) * width;
        for (Index j = 0; j < width; ++j) to[j] = accumulate ? to[j] + from[j] : from[j];
      }
    }
  });
}

/// out[i] (+)= x[i] m_t, block after block of `in` columns of x and `to` columns of out.
void products_of_blocks(const Tensor& x, const Tensor& w, const TypeGroups& groups, Tensor& out,
                        bool accumulate, Index in, Index to,
                        void (RowProducts::*multiply)(const MatrixView&, const Part&, real*, Index, bool)) {
  const Blocks of(w.shape());
  products(x, groups, out, accumulate,
           [&](RowProducts& products, const MatrixView& rows, Index type, real* y, bool add) {
             for (Index b = 0; b < of.blocks; ++b)
               (products.*multiply)(rows.column_range(b * in, (b + 1) * in), of(w, type, b), y + b * to,
                                    out.row_size(), add);
           });
}

/// Returns whether the rows of each type are contiguous, and on average numerous enough to parallelize each
/// product separately.
bool of_long_ranges(const TypeGroups& groups, Index rows, const Shape& w) {
  constexpr Index many = 1 << 12;
  return groups.rows.empty() && w.dims() == 3 && rows >= many * num_types(groups);
}

/// gather_mm_tn with one matmul_tn() per type.
void products_of_ranges(const Tensor& a, const Tensor& b, const TypeGroups& groups, Tensor& out,
                        bool accumulate) {
  for (Index type = 0; type < num_types(groups); ++type) {
    const Index first = groups.begin[type], last = groups.begin[type + 1];
    Tensor product = out.slice_rows(type, type + 1).reshape({a.row_size(), b.row_size()});
    matmul_tn(a.slice_rows(first, last), b.slice_rows(first, last), product, accumulate);
  }
}

}  // namespace

TypeGroups::TypeGroups(std::span<const Index> types, Index num_types) : begin(num_types + 1, 0) {
  for (const Index type : types) {
    require<ShapeError>(0 <= type && type < num_types, "type ", type, " of ", num_types);
    ++begin[type];
  }
  Index first = 0;
  for (Index& count : begin) first += std::exchange(count, first);
  if (std::is_sorted(types.begin(), types.end())) return;
  rows.resize(types.size());
  Array<Index> next = begin;
  for (std::size_t i = 0; i < types.size(); ++i) rows[next[types[i]]++] = static_cast<Index>(i);
}

void gather_mm(const Tensor& x, const Tensor& w, const TypeGroups& groups, Tensor& out, bool accumulate) {
  const TraceScope scope("gather_mm", TraceKind::compute);
  check(x, out, w, groups);
  const Blocks of(w.shape());
  products_of_blocks(x, w, groups, out, accumulate, of.rows, of.cols, &RowProducts::multiply);
}

void gather_mm_nt(const Tensor& x, const Tensor& w, const TypeGroups& groups, Tensor& out, bool accumulate) {
  const TraceScope scope("gather_mm_nt", TraceKind::compute);
  check(out, x, w, groups);
  const Blocks of(w.shape());
  products_of_blocks(x, w, groups, out, accumulate, of.cols, of.rows, &RowProducts::multiply_transposed);
}

void gather_mm_tn(const Tensor& a, const Tensor& b, const TypeGroups& groups, Tensor& out, bool accumulate) {
  const TraceScope scope("gather_mm_tn", TraceKind::compute);
  check(a, b, out, groups);
  if (of_long_ranges(groups, a.num_rows(), out.shape()))
    return products_of_ranges(a, b, groups, out, accumulate);
  if (!accumulate) out.fill(0);
  // With few matrices, each is computed in tiles of columns of a, so that every thread has work.
  const Blocks of(out.shape());
  const ProductMethod method = product_method();
  const Index types = num_types(groups);
  const Index tiles = of.blocks == 1 && types < 64 ? std::max<Index>(1, of.rows / 16) : 1;
  parallel_for(types * tiles, std::max<Index>(1, types / 256), [&](Index begin, Index end) {
    GatheredRows gathered_a, gathered_b;
    RowProducts products(method);
    for (Index task = begin; task < end; ++task) {
      const Index type = task / tiles, tile = task % tiles;
      const Index first = of.rows * tile / tiles, height = of.rows * (tile + 1) / tiles - first;
      const Index last = groups.begin[type + 1];
      for (Index i = groups.begin[type]; i < last; i += gathered_rows) {
        const Index stop = std::min(last, i + gathered_rows);
        const Part rows_a = gathered_a(a, groups, i, stop), rows_b = gathered_b(b, groups, i, stop);
        for (Index k = 0; k < of.blocks; ++k)
          products.multiply(rows_a.columns(k * of.rows + first, height).matrix.transposed(),
                            rows_b.columns(k * of.cols, of.cols),
                            out.row(type) + (k * of.rows + first) * of.cols, of.cols, true);
      }
    }
  });
}

}}  // namespace sar
