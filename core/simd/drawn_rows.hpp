// SPDX-License-Identifier: MIT

/// Random words for the elements of rows, many at once: the inner loop of dropout and of stochastic rounding.
/// For implementation files.
///
/// Philox runs on `lanes` blocks per vector and up to four vectors at a time, whose counters stay in
/// registers for all ten rounds. The words go through a buffer of 16 KiB in the L1 cache; no other memory is
/// written.
#pragma once

#include <sar/config.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <sar/core/isa/isa_begin.hpp>

namespace drawn_rows {

inline constexpr Index lanes = SAR_VECTOR_BYTES / 8;  // Philox blocks (of four words) per vector
inline constexpr Index tile = 4 * lanes;              // words per vector of blocks
using Words [[gnu::vector_size(SAR_VECTOR_BYTES)]] = std::uint64_t;

/// Returns the product of the low 32 bits of each lane and a 32-bit number.
inline Words multiply(const Words& a, std::uint64_t number) {
#if defined(__x86_64__) && SAR_VECTOR_BYTES == 64
  return reinterpret_cast<Words>(_mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a),
                                                        reinterpret_cast<__m512i>(Words{} + number)));
#elif defined(__x86_64__) && SAR_VECTOR_BYTES == 32
  return reinterpret_cast<Words>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(Words{} + number)));
#elif defined(__x86_64__)
  return reinterpret_cast<Words>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(Words{} + number)));
#else
  return (a & 0xffffffffu) * number;
#endif
}

/// Returns the lane that computes block k of a vector. Blocks of the first half are in the even lanes, so
/// that interleaving the words of adjacent lanes within 128 bits puts the words in order.
constexpr std::size_t lane_of(Index k) {
  return static_cast<std::size_t>(k < lanes / 2 ? 2 * k : 2 * k - lanes + 1);
}

/// Stores the four words of each block contiguously, in block order. `first` and `second` hold words 0, 1 and
/// words 2, 3 of each lane's block.
template <std::size_t... I>
inline void store_in_order(const Words& first, const Words& second, std::uint32_t* to,
                           std::index_sequence<I...>) {
  const Words low =
      __builtin_shufflevector(first, second, static_cast<int>(I % 2 == 0 ? I : I - 1 + lanes)...);
  const Words high =
      __builtin_shufflevector(first, second, static_cast<int>(I % 2 == 0 ? I + 1 : I + lanes)...);
  std::memcpy(to, &low, sizeof low);
  std::memcpy(to + tile / 2, &high, sizeof high);
}

/// Computes philox() of random.hpp for Groups * lanes blocks. Lane l of ids[g] and blocks[g] holds the row id
/// and the block number. The upper halves of the lanes are never read, so they are not cleared between
/// rounds.
template <std::size_t Groups>
inline void philox_blocks(const Words (&ids)[Groups], const Words (&blocks)[Groups],
                          std::array<std::uint32_t, 2> key, std::uint32_t* words) {
  Words c0[Groups], c1[Groups], c2[Groups], c3[Groups];
  for (std::size_t g = 0; g < Groups; ++g) {
    c0[g] = ids[g];
    c1[g] = ids[g] >> 32;
    c2[g] = blocks[g];
    c3[g] = blocks[g] >> 32;
  }
  for (int round = 0; round < 10; ++round) {
    for (std::size_t g = 0; g < Groups; ++g) {
      const Words p0 = multiply(c0[g], 0xD2511F53u);
      const Words p1 = multiply(c2[g], 0xCD9E8D57u);
      c0[g] = (p1 >> 32) ^ c1[g] ^ std::uint64_t{key[0]};
      c1[g] = p1;
      c2[g] = (p0 >> 32) ^ c3[g] ^ std::uint64_t{key[1]};
      c3[g] = p0;
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  for (std::size_t g = 0; g < Groups; ++g)
    store_in_order((c0[g] & 0xffffffffu) | (c1[g] << 32), (c2[g] & 0xffffffffu) | (c3[g] << 32),
                   words + static_cast<Index>(g) * tile,
                   std::make_index_sequence<static_cast<std::size_t>(lanes)>());
}

/// Draws blocks [first, first + count) of one row, count >= lanes. The last vector overlaps the one before it
/// if count is no multiple of `lanes`.
inline void draw_blocks(std::uint64_t id, Index first, Index count, const std::array<std::uint32_t, 2>& key,
                        std::uint32_t* words) {
  Words order{};
  for (Index k = 0; k < lanes; ++k) order[lane_of(k)] = static_cast<std::uint64_t>(first + k);
  const Words ids = Words{} + id;
  const auto from = [&](Index block) { return order + static_cast<std::uint64_t>(block); };
  Index block = 0;
  for (; block + 4 * lanes <= count; block += 4 * lanes)
    philox_blocks({ids, ids, ids, ids},
                  {from(block), from(block + lanes), from(block + 2 * lanes), from(block + 3 * lanes)}, key,
                  words + 4 * block);
  for (; block < count; block += lanes) {
    const Index at = std::min(block, count - lanes);
    philox_blocks({ids}, {from(at)}, key, words + 4 * at);
  }
}

/// Draws all `blocks` < lanes blocks of several rows, one row after the other.
inline void draw_short_rows(std::span<const Index> row_ids, Index blocks,
                            const std::array<std::uint32_t, 2>& key, std::uint32_t* words) {
  const Index all = blocks * std::ssize(row_ids);
  Index row = 0, block = 0;
  for (Index first = 0; first < all; first += lanes) {
    Words ids{}, numbers{};
    const Index used = std::min(lanes, all - first);
    for (Index k = 0; k < used; ++k) {
      ids[lane_of(k)] = static_cast<std::uint64_t>(row_ids[static_cast<std::size_t>(row)]);
      numbers[lane_of(k)] = static_cast<std::uint64_t>(block);
      if (++block == blocks) block = 0, ++row;
    }
    std::uint32_t drawn[tile];
    philox_blocks({ids}, {numbers}, key, drawn);
    std::copy_n(drawn, 4 * used, words + 4 * first);
  }
}

inline constexpr Index blocks_at_once = 1 << 10;  // 16 KiB of words, which stay in the L1 cache

/// Calls body(row, first column, number of columns, words) for each row, in several parts if the row is long;
/// every column exactly once. Column j uses word j % 4 of block j / 4 of Random(key) for the row's id.
template <class Body>
inline void for_drawn_rows(std::span<const Index> row_ids, Index row_size,
                           const std::array<std::uint32_t, 2>& key, const Body& body) {
  const Index blocks = (row_size + 3) / 4, rows = std::ssize(row_ids);
  std::uint32_t words[4 * blocks_at_once];
  if (blocks >= lanes) {
    for (Index row = 0; row < rows; ++row)
      for (Index begin = 0; begin < blocks; begin += blocks_at_once) {
        const Index first = std::min(begin, blocks - lanes), count = std::min(blocks_at_once, blocks - first);
        draw_blocks(static_cast<std::uint64_t>(row_ids[static_cast<std::size_t>(row)]), first, count, key,
                    words);
        body(row, 4 * begin, std::min(4 * (first + count), row_size) - 4 * begin,
             words + 4 * (begin - first));
      }
    return;
  }
  const Index rows_at_once = blocks_at_once / std::max<Index>(blocks, 1);
  for (Index first = 0; first < rows; first += rows_at_once) {
    const Index count = std::min(rows_at_once, rows - first);
    draw_short_rows(row_ids.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), blocks,
                    key, words);
    for (Index r = 0; r < count; ++r) body(first + r, 0, row_size, words + 4 * blocks * r);
  }
}

}  // namespace drawn_rows

#include <sar/core/isa/isa_end.hpp>
