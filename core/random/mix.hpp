// SPDX-License-Identifier: MIT

/// Hashes of 64-bit words.
#pragma once

#include <sar/config.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
