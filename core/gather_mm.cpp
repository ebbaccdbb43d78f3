#include <sar/core/error.hpp>
#include <sar/core/gather_mm.hpp>
#include <sar/core/packed_product.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/trace.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;
using ConstView = Eigen::Map<const Matrix>;

constexpr Index block_rows = 256;  // rows that are gathered at a time

Index num_types(const TypeGroups& groups) {
  return static_cast<Index>(groups.begin.size()) - 1;
}

Index row_number(const TypeGroups& groups, Index position) {
  return groups.rows.empty() ? position : groups.rows[position];
}

/// The matrices of w: `blocks` of [rows, cols] on the diagonal of each.
struct Blocks {
  Index blocks, rows, cols;

  explicit Blocks(const Shape& w)
      : blocks(w.dims() == 4 ? w[1] : 1), rows(w[w.dims() - 2]), cols(w[w.dims() - 1]) {}
  [[nodiscard]] ConstView operator()(const Tensor& w, Index type, Index block) const {
    return {w.row(type) + block * rows * cols, rows, cols};
  }
};

/// x [n, in], y [n, out]
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

/// Some rows of a tensor as a matrix, copied to memory of its own unless they lie side by side.
class GatheredRows {
 public:
  ConstView operator()(const Tensor& x, const TypeGroups& groups, Index first, Index last) {
    const Index width = x.row_size();
    if (groups.rows.empty()) return {x.row(first), last - first, width};
    buffer_.resize((last - first) * width);
    for (Index i = first; i < last; ++i)
      std::copy_n(x.row(row_number(groups, i)), width, buffer_.data() + (i - first) * width);
    return {buffer_.data(), last - first, width};
  }

 private:
  std::vector<real> buffer_;
};

/// out[i] (+)= x[i] m_t for every row; multiply(x, type, y) makes y = x m_t.
template <class Multiply>
void products(const Tensor& x, const TypeGroups& groups, Tensor& out, bool accumulate,
              const Multiply& multiply) {
  parallel_for(x.num_rows(), block_rows, [&](Index begin, Index end) {
    GatheredRows gathered;
    Matrix y;
    auto type = std::upper_bound(groups.begin.begin(), groups.begin.end(), begin) - groups.begin.begin() - 1;
    for (Index i = begin, last = begin; i < end; i = last, ++type) {
      last = std::min(end, groups.begin[type + 1]);
      if (i == last) continue;
      y.setZero(last - i, out.row_size());
      multiply(gathered(x, groups, i, last), type, y);
      for (Index k = i; k < last; ++k) {
        real* to = out.row(row_number(groups, k));
        const real* from = y.data() + (k - i) * y.cols();
        for (Index j = 0; j < y.cols(); ++j) to[j] = accumulate ? to[j] + from[j] : from[j];
      }
    }
  });
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
  products(x, groups, out, accumulate, [&](const ConstView& rows, Index type, Matrix& y) {
    for (Index b = 0; b < of.blocks; ++b)
      add_product(y.middleCols(b * of.cols, of.cols), rows.middleCols(b * of.rows, of.rows), of(w, type, b));
  });
}

void gather_mm_nt(const Tensor& x, const Tensor& w, const TypeGroups& groups, Tensor& out, bool accumulate) {
  const TraceScope scope("gather_mm_nt", TraceKind::compute);
  check(out, x, w, groups);
  const Blocks of(w.shape());
  products(x, groups, out, accumulate, [&](const ConstView& rows, Index type, Matrix& y) {
    for (Index b = 0; b < of.blocks; ++b)
      add_product(y.middleCols(b * of.rows, of.rows), rows.middleCols(b * of.cols, of.cols),
                  of(w, type, b).transpose());
  });
}

void gather_mm_tn(const Tensor& a, const Tensor& b, const TypeGroups& groups, Tensor& out, bool accumulate) {
  const TraceScope scope("gather_mm_tn", TraceKind::compute);
  check(a, b, out, groups);
  if (!accumulate) out.fill(0);
  // When there are few matrices, each is computed in tiles of columns of a, so that every thread has work.
  const Blocks of(out.shape());
  const Index types = num_types(groups);
  const Index tiles = of.blocks == 1 && types < 64 ? std::max<Index>(1, of.rows / 16) : 1;
  parallel_for(types * tiles, std::max<Index>(1, types / 256), [&](Index begin, Index end) {
    GatheredRows gathered_a, gathered_b;
    for (Index task = begin; task < end; ++task) {
      const Index type = task / tiles, tile = task % tiles;
      const Index first = of.rows * tile / tiles, height = of.rows * (tile + 1) / tiles - first;
      const Index last = groups.begin[type + 1];
      for (Index i = groups.begin[type]; i < last; i += block_rows) {
        const Index stop = std::min(last, i + block_rows);
        const ConstView rows_a = gathered_a(a, groups, i, stop), rows_b = gathered_b(b, groups, i, stop);
        for (Index k = 0; k < of.blocks; ++k)
          add_product(View(out.row(type) + (k * of.rows + first) * of.cols, height, of.cols),
                      rows_a.middleCols(k * of.rows + first, height).transpose(),
                      rows_b.middleCols(k * of.cols, of.cols));
      }
    }
  });
}

}  // namespace sar
