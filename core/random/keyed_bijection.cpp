// SPDX-License-Identifier: MIT

// Eight half rounds: each changes L or R, with a key of its own. The inverse subtracts the same values in
// reverse order. The rounds take fewer than a of the n numbers out of [0, n), so both directions take O(1)
// time on average.
#include <sar/core/error.hpp>
#include <sar/core/random/keyed_bijection.hpp>
#include <sar/core/random/mix.hpp>

#include <algorithm>
#include <cmath>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns F_k(x) mod n, nearly uniform in [0, n) for n < 2^32: the finaliser of SplitMix64, then a multiply
/// and shift instead of a division.
std::uint64_t round_value(std::uint64_t x, std::uint64_t key, std::uint64_t n) noexcept {
  return ((mix(x + key) >> 32) * n) >> 32;
}

std::uint64_t add(std::uint64_t x, std::uint64_t y, std::uint64_t n) noexcept {
  return x + y < n ? x + y : x + y - n;
}
std::uint64_t subtract(std::uint64_t x, std::uint64_t y, std::uint64_t n) noexcept {
  return x >= y ? x - y : x + n - y;
}

}  // namespace

KeyedBijection::KeyedBijection(Index n, const RandomKey& key) : size_(static_cast<std::uint64_t>(n)) {
  require<InputError>(n >= 0 && n < Index{1} << 62, "cannot permute ", n, " nodes, expected 0 to 2^62 - 1");
  left_ = static_cast<std::uint64_t>(std::max(1.0, std::ceil(std::sqrt(static_cast<double>(n)))));
  right_ = std::max<std::uint64_t>(1, (size_ + left_ - 1) / left_);
  const Random random(key);
  for (std::size_t round = 0; round < keys_.size(); ++round) keys_[round] = random.bits(round);
}

Index KeyedBijection::operator()(Index x) const noexcept {
  auto value = static_cast<std::uint64_t>(x);
  do {
    std::uint64_t left = value / right_;
    std::uint64_t right = value % right_;
    for (std::size_t round = 0; round < keys_.size(); round += 2) {
      left = add(left, round_value(right, keys_[round], left_), left_);
      right = add(right, round_value(left, keys_[round + 1], right_), right_);
    }
    value = left * right_ + right;
  } while (value >= size_);
  return static_cast<Index>(value);
}

Index KeyedBijection::inverse(Index y) const noexcept {
  auto value = static_cast<std::uint64_t>(y);
  do {
    std::uint64_t left = value / right_;
    std::uint64_t right = value % right_;
    for (std::size_t round = keys_.size(); round > 0; round -= 2) {
      right = subtract(right, round_value(left, keys_[round - 1], right_), right_);
      left = subtract(left, round_value(right, keys_[round - 2], left_), left_);
    }
    value = left * right_ + right;
  } while (value >= size_);
  return static_cast<Index>(value);
}

}}  // namespace sar
