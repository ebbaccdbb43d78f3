// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/modules/init.hpp>

#include <cmath>

namespace sar { inline namespace SAR_PRECISION { namespace init {
namespace {

/// Returns a tensor of scale * draw(random, row, column).
template <class Draw>
Tensor drawn(const Shape& shape, double scale, const RandomKey& key, const Draw& draw) {
  Tensor result(shape);
  const Random random(key);
  const Index columns = shape.row_size();
  parallel_for_each(shape[0], 16, [&](Index i) {
    for (Index j = 0; j < columns; ++j)
      result.row(i)[j] = static_cast<real>(
          scale * draw(random, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j)));
  });
  return result;
}

}  // namespace

Tensor uniform(const Shape& shape, double bound, const RandomKey& key) {
  return drawn(shape, bound, key, [](const Random& random, std::uint64_t i, std::uint64_t j) {
    return 2 * random.uniform(i, j) - 1;
  });
}

Tensor normal(const Shape& shape, double deviation, const RandomKey& key) {
  return drawn(shape, deviation, key,
               [](const Random& random, std::uint64_t i, std::uint64_t j) { return random.normal(i, j); });
}

Tensor xavier_uniform(const Shape& shape, double gain, const RandomKey& key) {
  require<ShapeError>(shape.dims() == 2, "xavier_uniform is for matrices, not for a parameter of shape ",
                      shape);
  return uniform(shape, gain * std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1])), key);
}

Tensor xavier_normal(const Shape& shape, double gain, const RandomKey& key) {
  require<ShapeError>(shape.dims() >= 2, "xavier_normal is for 2 dimensions and more, not for shape ", shape);
  Index field = 1;
  for (int d = 2; d < shape.dims(); ++d) field *= shape[d];
  const double deviation = gain * std::sqrt(2.0 / static_cast<double>((shape[0] + shape[1]) * field));
  return normal(shape, deviation, key);
}

Tensor linear_uniform(const Shape& shape, Index fan_in, const RandomKey& key) {
  return uniform(shape, fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0, key);
}

}}}  // namespace sar
