// SPDX-License-Identifier: MIT

// philox() does ten rounds of two multiplications, 32 by 32 to 64 bits. The key of a family is a chain of
// hashes (SplitMix64) of seed, stream and step. Two normal numbers come from one block of four words:
// words 0 and 1 give the radius, words 2 and 3 the angle; even elements take the cosine, odd ones the
// sine.
#include <sar/core/random/mix.hpp>
#include <sar/core/random/random.hpp>

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

}}  // namespace sar
