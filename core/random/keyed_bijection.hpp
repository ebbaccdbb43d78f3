// SPDX-License-Identifier: MIT

/// A keyed bijection of [0, n): a pseudo-random permutation and its inverse, computed without an array of n
/// entries.
///
/// An alternating Feistel network on the mixed radix (a, b) with a b >= n and a, b about sqrt(n). With x = L
/// b + R, each round computes
///
///     L = (L + F_k(R)) mod a,   R = (R + F_k(L)) mod b.
///
/// If the result is not below n, all rounds are repeated (cycle walking); this is rare because a b < n + a.
/// Source: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
#pragma once

#include <sar/config.hpp>
#include <sar/core/random/random.hpp>

#include <array>
#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// A pseudo-random permutation of [0, n), determined by n and the key.
class KeyedBijection {
 public:
  /// Throws InputError unless 0 <= n < 2^62.
  KeyedBijection(Index n, const RandomKey& key);

  /// Returns the image of x, 0 <= x < n.
  [[nodiscard]] Index operator()(Index x) const noexcept;
  /// Returns the x whose image is y, 0 <= y < n.
  [[nodiscard]] Index inverse(Index y) const noexcept;

 private:
  std::uint64_t size_;
  std::uint64_t left_;   // a
  std::uint64_t right_;  // b
  std::array<std::uint64_t, 8> keys_{};
};

}}  // namespace sar
