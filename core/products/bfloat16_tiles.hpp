/// Products of matrices split into bfloat16 parts (core/products/right_operand.hpp), with AMX tiles
/// (TDPBF16PS) or AVX512-BF16 (VDPBF16PS). For implementation files of core/.
///
/// An operand is stored in tiles of 16 rows (columns of b) x 32 numbers of the depth, 1 KiB each,
/// zero-padded; the high and low part of a tile are adjacent. A tile of `a` contains the pairs of a row side
/// by side, a tile of `b` those of 16 columns. 32 x 32 sums are computed at a time in 4 tile registers, while
/// their destination is prefetched. Both instructions treat numbers below 2^-126 as 0.
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

/// Returns the number of bfloat16 numbers in the tiles of an operand with `rows` rows (columns of b).
constexpr Index bfloat16_tile_numbers(Index rows, Index depth, int parts) {
  return (rows + 15) / 16 * ((depth + 31) / 32) * parts * 512;
}

/// Packs b [depth, cols] into tiles. Needs AVX512-BF16.
void pack_right_tiles(const MatrixView& b, int parts, std::uint16_t* to);

/// out = start + a b, with b in tiles, using AMX or AVX512-BF16; single-threaded. Prefetches like multiply()
/// of core/products/product.hpp.
void multiply_tiles(const MatrixView& a, const std::uint16_t* b, Index cols, int parts, bool amx,
                    const ProductTarget& target, const ReadAhead& ahead = {});
/// The same with one part and the result in bfloat16.
void multiply_tiles(const MatrixView& a, const std::uint16_t* b, Index cols, bool amx,
                    const Bfloat16Target& target, const ReadAhead& ahead = {});
}}  // namespace sar
