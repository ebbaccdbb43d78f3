// SPDX-License-Identifier: MIT

/// Random draws as functions of keys: hashes, counter-based numbers, bijections.
#pragma once

#include <sar/config.hpp>

#include <array>
#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

// Hashes of 64-bit words.

/// 2^64 divided by the golden ratio, odd.
inline constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15u;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that mixes all 64 bits. 0 stays 0.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A cheaper hash of a sequence: the hash of the words before, and one more word.
constexpr std::uint64_t with_word(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * golden_ratio;
  return hash ^ hash >> 29;
}

/// The hash of no words.
inline constexpr std::uint64_t hash_start = 0xcbf29ce484222325u;

// Counter-based random numbers. A draw is a pure function of (seed, stream, step, row, element): it is the
// same for every number of ranks and threads, and can be drawn again instead of being stored. Generator:
// Philox4x32-10, Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
// RandomStream says who draws from which streams of a seed.

/// Identifies an independent family of draws. For example, `stream` is a layer and `step` a training step.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t step = 0;
};

/// Returns the four 32-bit words of Philox4x32-10 for a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept;

/// The draws of one family. `row` is the original id of a node or edge; element i of a row is word i % 4 of
/// block i / 4.
///
/// @code
/// const Random random({.seed = 1, .stream = 3, .step = 0});
/// const double draw = random.normal(/*row=*/42, /*i=*/0);  // the same on all ranks
/// @endcode
class Random {
 public:
  explicit Random(const RandomKey& key) noexcept;
  /// Returns the Philox key of the family, for loops that draw many blocks at once.
  [[nodiscard]] std::array<std::uint32_t, 2> key() const noexcept { return key_; }
  /// Returns words 4 * block to 4 * block + 3 of a row.
  [[nodiscard]] std::array<std::uint32_t, 4> words(std::uint64_t row, std::uint64_t block) const noexcept {
    return philox({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32),
                   static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32)},
                  key_);
  }
  /// Returns a 64-bit word: element `i` of a row of 64-bit words.
  [[nodiscard]] std::uint64_t bits(std::uint64_t row, std::uint64_t i = 0) const noexcept;
  /// Returns element `i` of a row as a uniform number in [0, 1) with 53 bits.
  [[nodiscard]] double uniform(std::uint64_t row, std::uint64_t i = 0) const noexcept;
  /// Returns element `i` of a row as a standard normal number (Box-Muller).
  [[nodiscard]] double normal(std::uint64_t row, std::uint64_t i = 0) const noexcept;

 private:
  std::array<std::uint32_t, 2> key_;
};

/// Returns a uniform number in {0, ..., n - 1} from 64 random bits, up to a bias of n / 2^64.
inline Index uniform_below(std::uint64_t bits, Index n) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<Index>((static_cast<Wide>(bits) * static_cast<Wide>(n)) >> 64);
}

/// The first stream of each purpose. A purpose with several streams adds a number to it. Streams of modules
/// start far above the small numbers that a program may use with the same seed.
enum class RandomStream : std::uint64_t {
  gradcheck_weights = 1,
  gradcheck_directions = 2,  ///< plus the input
  partition = 0x70617274,
  sbm_order = 0x73626d00,
  sbm_edges,
  sbm_centres,
  sbm_noise,
  sbm_split,
  edge_split = 0x73706c69,
  node_split = 0x73706c6e,
  ways_of_pairs = 0x77617973,
  negatives = 0x6e656761,
  committee_bags = 0x6865616473,        ///< the head that a structure is left out by
  committee_turns = 0x7475726e73,       ///< the head that it trains in an epoch
  modules = std::uint64_t{1} << 32,     ///< plus the number of parameters and dropouts before: Generator
  neighbors = std::uint64_t{1} << 40,   ///< plus layer and edge type
  seed_order = std::uint64_t{1} << 41,  ///< of mini-batches; plus the rank if ranks have batches of their own
  layer_neighbors = std::uint64_t{1} << 43,  ///< of sources, for LABOR; plus layer and edge type
  saint = std::uint64_t{1} << 44,            ///< of subgraphs; plus what is drawn
  halo_rows = std::uint64_t{1} << 42,        ///< rounding; plus twice the operation, plus 1 for gradients
};

/// Returns the stream number k of a purpose.
constexpr std::uint64_t operator+(RandomStream first, std::uint64_t k) noexcept {
  return static_cast<std::uint64_t>(first) + k;
}

// A keyed bijection of [0, n): a pseudo-random permutation and its inverse, computed without an array of n
// entries.
//
// An alternating Feistel network on the mixed radix (a, b) with a b >= n and a, b about sqrt(n). With x = L
// b + R, each round computes
//
//     L = (L + F_k(R)) mod a,   R = (R + F_k(L)) mod b.
//
// If the result is not below n, all rounds are repeated (cycle walking); this is rare because a b < n + a.
// Source: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.

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
