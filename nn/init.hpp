/// Initial values of parameters, and where modules get their random streams from.
#pragma once

#include <sar/core/random.hpp>
#include <sar/core/tensor.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// Hands out streams of random numbers to the parameters and dropouts of a model, in the order of
/// construction:
///
///     sar::Generator gen(seed);
///     Net net(..., gen);
///
/// A stream is a name (RandomKey): a draw from it depends only on the name and on the position in the
/// parameter, or the global id of the node. A model that is built in the same order from the same seed
/// therefore has the same parameters on every rank, for any number of ranks and threads, without a broadcast.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) noexcept : seed_(seed) {}
  /// A stream that nobody else has; step 0.
  RandomKey next_stream() noexcept { return {seed_, first_stream + count_++, 0}; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

 private:
  // Streams of modules are apart from small numbers, which a program may use with the same seed.
  static constexpr std::uint64_t first_stream = std::uint64_t{1} << 32;
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

namespace init {

/// Independent uniform values in [-bound, bound).
Tensor uniform(const Shape& shape, double bound, const RandomKey& key);

/// Glorot & Bengio 2010: uniform with bound gain * sqrt(6 / (fan_in + fan_out)), for a matrix [fan_in,
/// fan_out] or its transpose. Throws ShapeError for other shapes.
Tensor xavier_uniform(const Shape& shape, double gain, const RandomKey& key);

/// torch's xavier_normal_: normal with deviation gain * sqrt(2 / (fan_in + fan_out)), where for [a, b, ...]
/// fan_in = b * (...) and fan_out = a * (...). Throws ShapeError for less than 2 dimensions.
Tensor xavier_normal(const Shape& shape, double gain, const RandomKey& key);

/// How torch.nn.Linear starts its weight (kaiming_uniform with a = sqrt(5)) and its bias: uniform with bound
/// 1 / sqrt(fan_in).
Tensor linear_uniform(const Shape& shape, Index fan_in, const RandomKey& key);

/// sqrt(2): keeps the variance of activations that go through ReLU (He et al. 2015).
inline constexpr double relu_gain = 1.4142135623730951;

}  // namespace init
}  // namespace sar
