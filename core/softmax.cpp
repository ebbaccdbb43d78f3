#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/softmax.hpp>
#include <sar/core/vector_math.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

// Elements of a block: input, output and exponentials fit into the second-level cache.
constexpr Index grain = 1 << 13;

struct Rows {
  Index count;
  Index width;
  [[nodiscard]] Index block() const { return std::max<Index>(1, grain / std::max<Index>(width, 1)); }
};

Rows rows_of_last_dimension(const Tensor& x, const Tensor& out) {
  require<ShapeError>(x.defined() && x.shape() == out.shape(), "softmax of a tensor of shape ", x.shape(),
                      " into one of shape ", out.shape());
  const Index width = x.shape()[x.shape().dims() - 1];
  return {width == 0 ? 0 : x.size() / width, width};
}

void add_or_set(real& out, real value, bool accumulate) {
  out = accumulate ? out + value : value;
}

}  // namespace

void softmax_rows(const Tensor& x, Tensor& out) {
  const Rows rows = rows_of_last_dimension(x, out);
  parallel_for(rows.count, rows.block(), [&](Index begin, Index end) {
    real* to = out.data() + begin * rows.width;
    for (Index i = begin; i < end; ++i) {
      const real* from = x.data() + i * rows.width;
      real* row = out.data() + i * rows.width;
      const real largest = *std::max_element(from, from + rows.width);
      for (Index j = 0; j < rows.width; ++j) row[j] = from[j] - largest;
    }
    vector_math::exp(to, to, (end - begin) * rows.width);
    for (Index i = begin; i < end; ++i) {
      real* row = out.data() + i * rows.width;
      double sum = 0;
      for (Index j = 0; j < rows.width; ++j) sum += static_cast<double>(row[j]);
      const real scale = static_cast<real>(1 / sum);
      for (Index j = 0; j < rows.width; ++j) row[j] *= scale;
    }
  });
}

void softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate) {
  const Rows rows = rows_of_last_dimension(y, out);
  require<ShapeError>(grad.shape() == y.shape(), "gradient of shape ", grad.shape(), " for softmax of shape ",
                      y.shape());
  parallel_for(rows.count, rows.block(), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const real* value = y.data() + i * rows.width;
      const real* g = grad.data() + i * rows.width;
      real* to = out.data() + i * rows.width;
      double sum = 0;
      for (Index j = 0; j < rows.width; ++j) sum += static_cast<double>(value[j]) * static_cast<double>(g[j]);
      const real mean = static_cast<real>(sum);
      for (Index j = 0; j < rows.width; ++j) add_or_set(to[j], value[j] * (g[j] - mean), accumulate);
    }
  });
}

void log_softmax_rows(const Tensor& x, Tensor& out) {
  const Rows rows = rows_of_last_dimension(x, out);
  parallel_for(rows.count, rows.block(), [&](Index begin, Index end) {
    real* to = out.data() + begin * rows.width;
    const Index n = (end - begin) * rows.width;
    for (Index i = begin; i < end; ++i) {
      const real* from = x.data() + i * rows.width;
      real* row = out.data() + i * rows.width;
      const real largest = *std::max_element(from, from + rows.width);
      for (Index j = 0; j < rows.width; ++j) row[j] = from[j] - largest;
    }
    std::vector<real> exponentials(n);
    vector_math::exp(to, exponentials.data(), n);
    for (Index i = begin; i < end; ++i) {
      real* row = out.data() + i * rows.width;
      const real* e = exponentials.data() + (i - begin) * rows.width;
      double sum = 0;
      for (Index j = 0; j < rows.width; ++j) sum += static_cast<double>(e[j]);
      const real log_sum = static_cast<real>(std::log(sum));
      for (Index j = 0; j < rows.width; ++j) row[j] -= log_sum;
    }
  });
}

void log_softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate) {
  const Rows rows = rows_of_last_dimension(y, out);
  require<ShapeError>(grad.shape() == y.shape(), "gradient of shape ", grad.shape(),
                      " for log_softmax of shape ", y.shape());
  parallel_for(rows.count, rows.block(), [&](Index begin, Index end) {
    const Index n = (end - begin) * rows.width;
    std::vector<real> softmax(n);
    vector_math::exp(y.data() + begin * rows.width, softmax.data(), n);
    for (Index i = begin; i < end; ++i) {
      const real* p = softmax.data() + (i - begin) * rows.width;
      const real* g = grad.data() + i * rows.width;
      real* to = out.data() + i * rows.width;
      double sum = 0;
      for (Index j = 0; j < rows.width; ++j) sum += static_cast<double>(g[j]);
      const real total_gradient = static_cast<real>(sum);
      for (Index j = 0; j < rows.width; ++j) add_or_set(to[j], g[j] - p[j] * total_gradient, accumulate);
    }
  });
}

}  // namespace sar
