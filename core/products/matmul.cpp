// SPDX-License-Identifier: MIT

// matmul, matmul_nt: b is packed once and shared by all threads; blocks of rows of a are multiplied in
// parallel. If a is deferred, a thread computes about 2^16 numbers of it at a time into a buffer in the L2
// cache and prefetches the memory that the next rows are computed from. Bytes moved: a read once, out written
// once.
//
// matmul_tn: the n rows are divided into parts (a power of two, at most 256), each with its own [k, m] sum. A
// task reads 128 rows of a and b at a time, or for products of bfloat16 numbers 512, and 256 where they are
// emulated. It adds their product to the sum in strips of columns of a, which stay in the cache. The sums of
// the parts are added in order, in double precision. Bytes moved: a and b once, plus the parts.
#include <sar/core/error.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/core/products/right_operand.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/trace/trace.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

MatrixView view(const Tensor& t) {
  return {t.data(), t.num_rows(), t.row_size(), t.row_size(), 1};
}

constexpr Index block_unit = 48;  // rows; a multiple of the tile heights of the kernel

/// Returns how many rows of `columns` numbers a thread computes at a time, so that they stay in the L2 cache.
Index chunk_rows(Index columns) {
  constexpr Index chunk_numbers = Index{1} << 16;
  return std::max(chunk_numbers / std::max<Index>(columns, 1) / block_unit, Index{1}) * block_unit;
}

/// Returns the rows per parallel block: about 2^22 operations, counting an element moved as 16 operations. So
/// few that threads get nearly equal shares of some thousand rows, and many beside the start of a task.
Index rows_per_task(Index k, Index m) {
  constexpr Index block_operations = Index{1} << 22;
  const Index rows = block_operations / (2 * k * m + 16 * (k + m) + 1);
  return std::clamp<Index>(rows / block_unit * block_unit, block_unit, 1 << 15);
}

void check(bool fits, const char* formula, const RowOperand& a, const RowOperand& b, const Shape& out) {
  const bool matrices = a.shape().dims() == 2 && b.shape().dims() == 2 && out.dims() == 2;
  require<ShapeError>(matrices && fits, formula, ": a has shape ", a.shape(), ", b ", b.shape(), ", out ",
                      out);
}

/// out = addend + a b. Blocks of rows run in parallel.
void row_blocks(const char* formula, const RowOperand& a, const MatrixView& b, TypedRows& out,
                const Addend& addend) {
  const Tensor& bias = addend.bias;
  require<ShapeError>(!bias.defined() || bias.shape() == Shape{out.row_size()}, formula, ": bias has shape ",
                      bias.shape(), ", out ", out.shape());
  if (out.size() == 0) return;
  const ProductMethod method = product_method(out.is_bfloat16());
  const bool widens = a.is_bfloat16() && method.precision != MatmulPrecision::medium;
  RightOperand right(method);
  right.pack(b);
  const Index width = b.cols;
  const real* const added = bias.defined() ? bias.data() : nullptr;
  const auto multiply = [&](const MatrixView& rows, Index first, const ReadAhead& ahead) {
    if (out.is_bfloat16())
      return right.multiply(
          rows, Bfloat16Target{out.bfloat16() + first * width, width, added, addend.accumulate}, ahead);
    real* const to = out.reals().row(first);
    right.multiply(
        rows, ProductTarget{to, width, addend.accumulate ? to : added, addend.accumulate ? width : 0}, ahead);
  };
  const auto next_rows = [&](Index first, Index count) {  // what the product of these rows reads and writes
    const Index last = std::min(first + count, out.num_rows());
    const auto* const written = static_cast<const std::byte*>(out.at(first * width));
    return ReadAhead{a.reads(first, last), memory_of(written, (last - first) * width * bytes_of(out.type()))};
  };
  parallel_for(out.num_rows(), rows_per_task(b.rows, b.cols), [&](Index begin, Index end) {
    RowBuffer memory;
    const Index chunk = a.is_deferred() || widens ? chunk_rows(b.rows) : end - begin;
    for (Index i = begin; i < end; i += chunk) {
      const Index stop = std::min(end, i + chunk);
      multiply(widens ? a.view_of_reals(i, stop, memory.reals) : a.view(i, stop, memory), i,
               a.is_deferred() || widens ? next_rows(stop, stop - i) : ReadAhead{});
    }
  });
}

/// How the sum over n rows of a^T b is divided: `parts` sums of `part_rows` rows, each computed in `tiles`
/// tiles of `tile_rows` rows of the result.
struct SumPlan {
  Index part_rows = 0, parts = 0;
  Index tile_rows = 0, tiles = 0;
};

/// A power of two of parts divides evenly among the usual numbers of threads. If there are few parts, the
/// result is divided into tiles, too.
SumPlan plan_sum(Index n, Index k, Index m) {
  constexpr Index max_parts = 256;
  constexpr Index min_tasks = 8;
  const Index by_memory = n * (k + m) / (16 * k * m);
  const Index by_work = n / rows_per_task(k, m);
  const auto wanted =
      static_cast<std::uint64_t>(std::clamp<Index>(std::min(by_memory, by_work), 1, max_parts));
  const auto parts = static_cast<Index>(std::bit_floor(wanted));
  SumPlan plan{};
  plan.part_rows = (n + parts - 1) / parts;
  plan.parts = (n + plan.part_rows - 1) / plan.part_rows;
  const Index tiles = std::max<Index>(min_tasks / plan.parts, 1);
  plan.tile_rows = ((k + tiles - 1) / tiles + block_unit - 1) / block_unit * block_unit;
  plan.tiles = (k + plan.tile_rows - 1) / plan.tile_rows;
  return plan;
}

/// Returns share `part` of `parts` of the memory that rows [begin, begin + count) of x are read from.
std::span<const std::byte> share(const RowOperand& x, Index begin, Index count, Index part, Index parts) {
  const auto rows = x.reads(begin, begin + count);
  const auto first = rows.size() * part / parts, end = rows.size() * (part + 1) / parts;
  return rows.subspan(first, end - first);
}

/// The column sums of a factor: one partial sum per part of the rows, added in the order of the parts.
class PartialSums {
 public:
  PartialSums(Tensor* out, Index parts, Index columns)
      : out_(out), columns_(columns), sums_(out == nullptr ? 0 : parts * columns, 0) {
    require<ShapeError>(out == nullptr || out->shape() == Shape{columns}, "sums of ", columns,
                        " columns in a tensor of shape ", out == nullptr ? Shape() : out->shape());
  }
  void add(Index part, const MatrixView& rows) {
    if (out_ == nullptr) return;
    const ConstTypedNumbers numbers = rows.bfloat16 != nullptr ? ConstTypedNumbers(rows.bfloat16) : rows.data;
    add_rows_to(numbers, rows.rows, columns_, sums_.data() + part * columns_);
  }
  void finish() {
    for (Index at = columns_; at < std::ssize(sums_); ++at) sums_[at % columns_] += sums_[at];
    for (Index j = 0; out_ != nullptr && j < columns_; ++j) out_->data()[j] = static_cast<real>(sums_[j]);
  }

 private:
  Tensor* out_;  // null: not computed
  Index columns_;
  Array<double> sums_;
};

/// sum [height, b columns] += a[:, first : first + height]^T b over the rows [begin, end). The product of
/// `depth` rows at a time is added to the sum, while the next rows are prefetched. Calls seen(rows of a, rows
/// of b) for all of them.
void add_sum(ProductMethod method, const RowOperand& a, Index first, Index height, const RowOperand& b,
             Index begin, Index end, real* sum,
             FunctionRef<void(const MatrixView& a, const MatrixView& b)> seen) {
  const bool in_reals = method.precision == MatmulPrecision::highest;
  const Index depth = in_reals ? 128 : method.unit == Bfloat16Unit::emulated ? 256 : 512;
  const Index unit = in_reals ? 1 : 96;  // strips of whole tiles
  const Index m = b.row_size(), wanted = (height + rows_per_task(depth, m) - 1) / rows_per_task(depth, m);
  const Index units = (height + unit - 1) / unit, strips = std::min(wanted, units);
  RightOperand right(method);
  RowBuffer memory_of_a, memory_of_b;
  for (Index i = begin; i < end; i += depth) {
    const Index stop = std::min(end, i + depth);
    const auto view = [&](const RowOperand& x, RowBuffer& memory) {
      return method.precision == MatmulPrecision::medium ? x.view(i, stop, memory)
                                                         : x.view_of_reals(i, stop, memory.reals);
    };
    const MatrixView rows_of_a = view(a, memory_of_a), rows_of_b = view(b, memory_of_b);
    seen(rows_of_a, rows_of_b);
    right.pack_or_borrow(rows_of_b, b.readable_behind(stop));
    for (Index s = 0; s < strips; ++s) {
      const Index j = units * s / strips * unit, next = std::min(height, units * (s + 1) / strips * unit);
      const MatrixView left = rows_of_a.column_range(first + j, first + next);
      right.multiply(left.transposed(), {sum + j * m, m, sum + j * m, m},
                     {share(a, stop, depth, s, strips), share(b, stop, depth, s, strips)});
      poll_progress();
    }
  }
}

}  // namespace

void matmul(const RowOperand& a, const Tensor& b, TypedRows out, const Addend& addend) {
  const TraceScope scope("matmul", TraceKind::compute);
  const char* const formula = "out [n, m] = a [n, k] b [k, m]";
  check(a.row_size() == b.num_rows() && out.num_rows() == a.num_rows() && out.row_size() == b.row_size(),
        formula, a, b, out.shape());
  row_blocks(formula, a, view(b), out, addend);
}

void matmul_nt(const RowOperand& a, const Tensor& b, TypedRows out, const Addend& addend) {
  const TraceScope scope("matmul_nt", TraceKind::compute);
  const char* const formula = "out [n, m] = a [n, k] (b [m, k])^T";
  check(a.row_size() == b.row_size() && out.num_rows() == a.num_rows() && out.row_size() == b.num_rows(),
        formula, a, b, out.shape());
  row_blocks(formula, a, view(b).transposed(), out, addend);
}

void matmul_tn(const RowOperand& a, const RowOperand& b, Tensor& out, bool accumulate,
               const ColumnSums& sums) {
  const TraceScope scope("matmul_tn", TraceKind::compute);
  check(a.num_rows() == b.num_rows() && out.num_rows() == a.row_size() && out.row_size() == b.row_size(),
        "out [k, m] = (a [n, k])^T b [n, m]", a, b, out.shape());
  if (!accumulate) out.fill(0);

  const ProductMethod method = product_method(a.is_bfloat16() && b.is_bfloat16());
  const Index n = a.num_rows(), k = a.row_size(), m = b.row_size();
  const bool empty = n == 0 || out.size() == 0;
  const SumPlan plan = empty ? SumPlan{.part_rows = n, .parts = 1} : plan_sum(n, k, m);
  Tensor partial({plan.parts - 1, k, m});  // the first part is summed in `out`
  PartialSums sums_of_a(sums.of_a, plan.parts, k), sums_of_b(sums.of_b, plan.parts, m);
  const auto seen = [&](Index part, const MatrixView& rows_of_a, const MatrixView& rows_of_b) {
    sums_of_a.add(part, rows_of_a);
    sums_of_b.add(part, rows_of_b);
  };
  if (empty) {
    RowBuffer memory;
    if (sums.of_a != nullptr) sums_of_a.add(0, a.view(0, n, memory));
    if (sums.of_b != nullptr) sums_of_b.add(0, b.view(0, n, memory));
  }
  parallel_for(plan.parts * plan.tiles, 1, [&](Index task, Index) {
    const Index part = task / plan.tiles, first = task % plan.tiles * plan.tile_rows;
    const Index height = std::min(plan.tile_rows, k - first);
    real* sum = (part == 0 ? out.data() : partial.row(part - 1)) + first * m;
    if (part > 0) std::fill_n(sum, height * m, real{0});
    add_sum(method, a, first, height, b, part * plan.part_rows, std::min(n, (part + 1) * plan.part_rows), sum,
            [&](const MatrixView& rows_of_a, const MatrixView& rows_of_b) {
              if (first == 0) seen(part, rows_of_a, rows_of_b);
            });
  });
  sums_of_a.finish();
  sums_of_b.finish();
  add_parts(partial, out);
}

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
