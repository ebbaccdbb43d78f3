#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/typed_matmul.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <utility>
#include <vector>

namespace sar {
namespace {

using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;
using ConstView = Eigen::Map<const Matrix>;

constexpr Index block = 256;  // rows that are gathered at a time

Index num_types(const TypeGroups& groups) {
  return static_cast<Index>(groups.begin.size()) - 1;
}

Index row_number(const TypeGroups& groups, Index position) {
  return groups.rows.empty() ? position : groups.rows[static_cast<std::size_t>(position)];
}

void check(bool fits, const char* formula, const Tensor& a, const Tensor& b, const Tensor& out) {
  require<ShapeError>(fits, formula, ": shapes ", a.shape(), ", ", b.shape(), " and ", out.shape());
}

/// Some rows of a tensor as a matrix, copied to memory of its own unless they lie side by side.
class GatheredRows {
 public:
  ConstView operator()(const Tensor& x, const TypeGroups& groups, Index first, Index last) {
    const Index width = x.row_size();
    if (groups.rows.empty()) return {x.row(first), last - first, width};
    buffer_.resize(static_cast<std::size_t>((last - first) * width));
    for (Index i = first; i < last; ++i)
      std::copy_n(x.row(row_number(groups, i)), width, buffer_.data() + (i - first) * width);
    return {buffer_.data(), last - first, width};
  }

 private:
  std::vector<real> buffer_;
};

/// out[i] (+)= x[i] m_t for every row, where matrix(t) gives m_t.
template <class MatrixOf>
void products(const Tensor& x, const TypeGroups& groups, Tensor& out, bool accumulate,
              const MatrixOf& matrix) {
  parallel_for(x.num_rows(), block, [&](Index begin, Index end) {
    GatheredRows gathered;
    Matrix y;
    auto type = std::upper_bound(groups.begin.begin(), groups.begin.end(), begin) - groups.begin.begin() - 1;
    for (Index i = begin, last = begin; i < end; i = last, ++type) {
      last = std::min(end, groups.begin[static_cast<std::size_t>(type) + 1]);
      if (i == last) continue;
      y.noalias() = gathered(x, groups, i, last) * matrix(type);
      for (Index k = i; k < last; ++k) {
        real* to = out.row(row_number(groups, k));
        const real* from = y.data() + (k - i) * y.cols();
        for (Index j = 0; j < y.cols(); ++j) to[j] = accumulate ? to[j] + from[j] : from[j];
      }
    }
  });
}

}  // namespace

TypeGroups::TypeGroups(std::span<const Index> types, Index num_types)
    : begin(static_cast<std::size_t>(num_types) + 1, 0) {
  for (const Index type : types) {
    require<ShapeError>(0 <= type && type < num_types, "type ", type, " of ", num_types);
    ++begin[static_cast<std::size_t>(type)];
  }
  Index first = 0;
  for (Index& count : begin) first += std::exchange(count, first);
  if (std::is_sorted(types.begin(), types.end())) return;
  rows.resize(types.size());
  Array<Index> next = begin;
  for (std::size_t i = 0; i < types.size(); ++i)
    rows[static_cast<std::size_t>(next[static_cast<std::size_t>(types[i])]++)] = static_cast<Index>(i);
}

void typed_matmul(const Tensor& x, const Tensor& w, const TypeGroups& groups, Tensor& out, bool accumulate) {
  check(x.shape().dims() == 2 && w.shape().dims() == 3 && w.shape()[0] == num_types(groups) &&
            w.shape()[1] == x.shape()[1] && out.shape() == Shape{x.num_rows(), w.shape()[2]} &&
            groups.begin.back() == x.num_rows(),
        "out [n, out] = x [n, in] w [types, in, out]", x, w, out);
  products(x, groups, out, accumulate,
           [&](Index type) { return ConstView(w.row(type), w.shape()[1], w.shape()[2]); });
}

void typed_matmul_nt(const Tensor& x, const Tensor& w, const TypeGroups& groups, Tensor& out,
                     bool accumulate) {
  check(x.shape().dims() == 2 && w.shape().dims() == 3 && w.shape()[0] == num_types(groups) &&
            w.shape()[2] == x.shape()[1] && out.shape() == Shape{x.num_rows(), w.shape()[1]} &&
            groups.begin.back() == x.num_rows(),
        "out [n, in] = x [n, out] (w [types, in, out])^T", x, w, out);
  products(x, groups, out, accumulate,
           [&](Index type) { return ConstView(w.row(type), w.shape()[1], w.shape()[2]).transpose(); });
}

void typed_matmul_tn(const Tensor& a, const Tensor& b, const TypeGroups& groups, Tensor& out,
                     bool accumulate) {
  check(a.shape().dims() == 2 && b.shape().dims() == 2 && a.num_rows() == b.num_rows() &&
            groups.begin.back() == a.num_rows() &&
            out.shape() == Shape{num_types(groups), a.shape()[1], b.shape()[1]},
        "out [types, in, out] = (a [n, in])^T b [n, out]", a, b, out);
  if (!accumulate) out.fill(0);
  // Few types are cut by columns of a as well, so that every thread finds work.
  const Index in = a.shape()[1], types = num_types(groups);
  const Index tiles = types < 64 ? std::max<Index>(1, in / 16) : 1;
  parallel_for(types * tiles, std::max<Index>(1, types / 256), [&](Index begin, Index end) {
    GatheredRows gathered_a, gathered_b;
    for (Index piece = begin; piece < end; ++piece) {
      const Index type = piece / tiles, tile = piece % tiles;
      const Index first = in * tile / tiles, height = in * (tile + 1) / tiles - first;
      View sum(out.row(type) + first * b.row_size(), height, b.row_size());
      const Index last = groups.begin[static_cast<std::size_t>(type) + 1];
      for (Index i = groups.begin[static_cast<std::size_t>(type)]; i < last; i += block) {
        const Index stop = std::min(last, i + block);
        sum.noalias() += gathered_a(a, groups, i, stop).middleCols(first, height).transpose() *
                         gathered_b(b, groups, i, stop);
      }
    }
  });
}

}  // namespace sar
