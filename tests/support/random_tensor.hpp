// SPDX-License-Identifier: MIT

/// Reproducible tensors for tests.
#pragma once

#include <sar/core/random.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>

namespace sar::test {

/// Uniform in [low, high); `stream` names the draw.
inline Tensor random_tensor(const Shape& shape, std::uint64_t stream, double low = -1, double high = 1) {
  const Random random({20240607, stream, 0});
  Tensor result(shape);
  for (Index i = 0; i < result.size(); ++i)
    result.data()[i] = static_cast<real>(low + (high - low) * random.uniform(static_cast<std::uint64_t>(i)));
  return result;
}

/// Values of either sign with a magnitude in [0.2, 1.2), where relu and the like are smooth.
inline Tensor random_away_from_zero(const Shape& shape, std::uint64_t stream) {
  Tensor result = random_tensor(shape, stream);
  for (real& value : result.values()) value += value < 0 ? real(-0.2) : real(0.2);
  return result;
}

}  // namespace sar::test
