// SPDX-License-Identifier: MIT

/// RandomStream: who draws from which streams of a seed, so that no two purposes share draws.
#pragma once

#include <sar/config.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
