// SPDX-License-Identifier: MIT

/// Products of matrices split into bfloat16 parts (core/products/right_operand.hpp), with AMX tiles
/// (TDPBF16PS) or AVX512-BF16 (VDPBF16PS). For implementation files of core/.
///
/// The right operand b is stored in tiles of 16 columns x 32 numbers of the depth, 1 KiB each, zero-padded:
/// the pairs of 16 columns along the depth, side by side. The high and low part of a tile are adjacent, and
/// the tiles of 16 columns follow each other along the depth. Both instructions treat numbers below 2^-126 as
/// 0.
#pragma once

#include <sar/core/products/product.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// Whether the functions below exist.
#if defined(__x86_64__) && !SAR_DOUBLE
inline constexpr bool has_bfloat16_tiles = true;
#else
inline constexpr bool has_bfloat16_tiles = false;
#endif

/// Returns the number of bfloat16 numbers in the tiles of b.
constexpr Index bfloat16_tile_numbers(Index cols, Index depth, int parts) {
  return (cols + 15) / 16 * ((depth + 31) / 32) * parts * 512;
}

/// Packs b [depth, cols] into tiles. Needs AVX512-BF16.
void pack_right_tiles(const MatrixView& b, int parts, std::uint16_t* to);

/// out = start + a b for a target of either type, with b in tiles, using AMX; single-threaded. `a` is copied
/// to tiles of 16 rows, with the pairs of a row side by side, 64 rows at a time. Prefetches like multiply()
/// of core/products/product.hpp.
void multiply_tiles(const MatrixView& a, const std::uint16_t* b, Index cols, int parts,
                    const ProductTarget& target, const ReadAhead& ahead);
void multiply_tiles(const MatrixView& a, const std::uint16_t* b, Index cols, int parts,
                    const Bfloat16Target& target, const ReadAhead& ahead);

/// The same using AVX512-BF16.
void multiply_vectors(const MatrixView& a, const std::uint16_t* b, Index cols, int parts,
                      const ProductTarget& target, const ReadAhead& ahead);
void multiply_vectors(const MatrixView& a, const std::uint16_t* b, Index cols, int parts,
                      const Bfloat16Target& target, const ReadAhead& ahead);
}}  // namespace sar
