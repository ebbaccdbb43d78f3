// SPDX-License-Identifier: MIT

// Hash: 128 independent 32-bit lanes, each like FNV-1a (Fowler, Noll, Vo) with one more step. Each word is
// xored into its lane, the lane is multiplied by the FNV prime, and its high bits are xored into the low
// ones, which a product alone never does (changed signs are the usual case here). Each step is a bijection of
// the lane, so one changed word always changes its lane, whatever follows.
//
// The lanes of a block of 256 KB stay in vector registers or L1; the block's lanes, then the blocks, are
// combined with SplitMix64's finaliser. Memory traffic: one read of x.
#include <sar/core/random.hpp>
#include <sar/core/tensor/fingerprint.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cstring>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index lanes = 128;            // 32-bit words hashed per step
constexpr Index grain_bytes = 1 << 18;  // per parallel block

std::uint64_t fingerprint_of_block(const char* bytes, Index count) {
  constexpr Index step = lanes * 4;
  std::uint32_t lane[lanes];
  for (Index l = 0; l < lanes; ++l) lane[l] = static_cast<std::uint32_t>(l + 1);
  for (Index at = 0; at < count; at += step) {
    std::uint32_t words[lanes] = {};
    std::memcpy(words, bytes + at, std::min(step, count - at));
    for (Index l = 0; l < lanes; ++l) {
      const std::uint32_t product = (lane[l] ^ words[l]) * 0x01000193u;
      lane[l] = product ^ (product >> 15);
    }
  }
  std::uint64_t all = 0;
  for (Index l = 0; l < lanes; l += 2) all = mix(all ^ (std::uint64_t{lane[l]} << 32 | lane[l + 1]));
  return all;
}

}  // namespace

std::uint64_t fingerprint(const TypedRows& x) {
  const auto* bytes = static_cast<const char*>(x.at(0));
  return parallel_reduce(
      x.size() * bytes_of(x.type()), grain_bytes, std::uint64_t{0},
      [&](Index begin, Index end) { return fingerprint_of_block(bytes + begin, end - begin); },
      [](std::uint64_t all, std::uint64_t block) { return mix(all + golden_ratio) ^ block; });
}
}}  // namespace sar
