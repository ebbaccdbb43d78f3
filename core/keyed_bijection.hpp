/// A keyed bijection of [0, n): a random-looking permutation and its inverse in closed form, without an array
/// of n entries.
///
/// It is an alternating Feistel network on the mixed radix (a, b) with a b >= n, both about sqrt(n). With
/// x = L b + R, each round computes
///     L = (L + F_k(R)) mod a,   R = (R + F_k(L)) mod b.
/// All rounds are repeated while the result is not below n (cycle walking), which is rare as a b < n + a.
/// Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
#pragma once

#include <sar/config.hpp>
#include <sar/core/random.hpp>

#include <array>
#include <cstdint>

namespace sar::inline SAR_PRECISION {

class KeyedBijection {
 public:
  /// Throws InputError unless 0 <= n < 2^62.
  KeyedBijection(Index n, const RandomKey& key);

  /// The image of x, 0 <= x < n.
  [[nodiscard]] Index operator()(Index x) const noexcept;
  /// The x whose image is y, 0 <= y < n.
  [[nodiscard]] Index inverse(Index y) const noexcept;

 private:
  std::uint64_t size_;
  std::uint64_t left_;   // a
  std::uint64_t right_;  // b
  std::array<std::uint64_t, 8> keys_{};
};

}  // namespace sar
