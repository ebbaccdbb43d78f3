// SPDX-License-Identifier: MIT

// philox() does ten rounds of two multiplications, 32 by 32 to 64 bits. The key of a family is a chain of
// hashes (SplitMix64) of seed, stream and step. Two normal numbers come from one block of four words:
// words 0 and 1 give the radius, words 2 and 3 the angle; even elements take the cosine, odd ones the
// sine.
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sar { inline namespace SAR_PRECISION {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

Random::Random(const RandomKey& key) noexcept {
  const auto hash = [](std::uint64_t x) { return mix(x + golden_ratio); };
  const std::uint64_t mixed = hash(hash(hash(key.seed) ^ key.stream) ^ key.step);
  key_ = {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
}

std::uint64_t Random::bits(std::uint64_t row, std::uint64_t i) const noexcept {
  const auto w = words(row, i / 2);
  return i % 2 == 0 ? (std::uint64_t{w[1]} << 32 | w[0]) : (std::uint64_t{w[3]} << 32 | w[2]);
}

double Random::uniform(std::uint64_t row, std::uint64_t i) const noexcept {
  return static_cast<double>(bits(row, i) >> 11) * 0x1.0p-53;
}

double Random::normal(std::uint64_t row, std::uint64_t i) const noexcept {
  const auto w = words(row, i / 2);
  const double radius = std::sqrt(-2 * std::log((w[0] + (w[1] + 0.5) * 0x1.0p-32) * 0x1.0p-32 + 0x1.0p-65));
  const double angle = 2 * std::numbers::pi * ((w[2] + (w[3] + 0.5) * 0x1.0p-32) * 0x1.0p-32);
  return radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// Eight half rounds: each changes L or R, with a key of its own. The inverse subtracts the same values in
// reverse order. The rounds take fewer than a of the n numbers out of [0, n), so both directions take O(1)
// time on average.

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
