// SPDX-License-Identifier: MIT

/// Initial values of parameters, and the random streams of modules.
#pragma once

#include <sar/core/memory/transaction.hpp>
#include <sar/core/random.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// A source of random streams for the parameters and dropouts of a model, in the order of their construction:
///
/// @code
/// Generator gen(/*seed=*/1);
/// const Linear first(64, 16, gen), second(16, 4, gen);
/// @endcode
///
/// A stream is a key (RandomKey). A draw depends only on the key and on the position in the parameter, or the
/// node's id. Models that are constructed in the same order from the same seed therefore have the same
/// parameters on every rank, for any number of ranks and threads, without a broadcast.
class Generator {
 public:
  /// `first_stream`: the number of streams that are skipped, for the parts of a model that are made again.
  explicit Generator(std::uint64_t seed, std::uint64_t first_stream = 0)
      : seed_(seed), count_(first_stream) {}
  /// Returns a stream that no other module has, at step 0.
  RandomKey next_stream() { return {seed_, RandomStream::modules + count_.change()++, 0}; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Returns the number of streams that were given so far, and skipped.
  [[nodiscard]] std::uint64_t num_streams() const noexcept { return count_.get(); }

 private:
  std::uint64_t seed_;
  Recoverable<std::uint64_t> count_;
};

namespace init {

/// Returns independent uniform values in [-bound, bound).
Tensor uniform(const Shape& shape, double bound, const RandomKey& key);

/// Returns independent normal values with mean 0 and this standard deviation.
Tensor normal(const Shape& shape, double deviation, const RandomKey& key);

/// Returns Xavier-uniform values (Glorot & Bengio 2010) for a matrix [fan_in, fan_out] or its transpose,
/// uniform with
///
///     bound = gain * sqrt(6 / (fan_in + fan_out))
///
/// Throws ShapeError for other shapes.
Tensor xavier_uniform(const Shape& shape, double gain, const RandomKey& key);

/// Returns Xavier-normal values (torch's xavier_normal_) for a shape [a, b, ...] with fan_in = b * (...) and
/// fan_out = a * (...), normal with
///
///     deviation = gain * sqrt(2 / (fan_in + fan_out))
///
/// Throws ShapeError for less than 2 dimensions.
Tensor xavier_normal(const Shape& shape, double gain, const RandomKey& key);

/// Returns the initial values of weight and bias of torch.nn.Linear (kaiming_uniform with a = sqrt(5)):
/// uniform with bound 1 / sqrt(fan_in).
Tensor linear_uniform(const Shape& shape, Index fan_in, const RandomKey& key);

/// sqrt(2): preserves the variance of activations through ReLU (He et al. 2015).
inline constexpr double relu_gain = 1.4142135623730951;

}  // namespace init
}}  // namespace sar
