/// A keyed bijection of [0, n): a random-looking permutation that is computed in closed form, in both
/// directions, without an array of n entries.
///
/// An alternating Feistel network on the mixed radix (a, b), a b >= n, both about sqrt(n): x = L b + R, then
/// in turn
///     L = (L + F_k(R)) mod a,   R = (R + F_k(L)) mod b,
/// repeated while the result is not below n (cycle walking; a b < n + a, so hardly ever). Black and Rogaway,
/// "Ciphers with arbitrary finite domains", CT-RSA 2002.
#pragma once

#include <sar/config.hpp>
#include <sar/core/random.hpp>

#include <array>
#include <cstdint>

namespace sar {

class KeyedBijection {
 public:
  /// 0 <= n < 2^62; throws InputError otherwise.
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
