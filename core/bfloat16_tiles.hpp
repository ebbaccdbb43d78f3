/// Products of matrices that are split into bfloat16 parts (core/right_operand.hpp), by the instructions for
/// them: AMX tiles (TDPBF16PS), or AVX512-BF16 (VDPBF16PS). For implementation files of core/.
///
/// An operand is stored in tiles of 16 rows (columns of b) x 32 numbers of the depth, 1 KiB, the parts of a
/// tile one after the other; what is missing at the ends is 0. A tile of `a` has the pairs of a row side by
/// side, a tile of `b` those of 16 columns. 32 x 32 sums are computed at a time, in 4 tile registers, and
/// their place in the result is requested meanwhile. Both instructions take numbers below 2^-126 for 0.
///
/// With one part, [160000, 256] x [256, 256] is bound by memory and by the conversion of `a`; with two, by
/// the tile products (3 x 16 cycles for 16 x 16 x 32).
#pragma once

#include <sar/core/product.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// Whether the functions below are there.
#if defined(__x86_64__) && !SAR_DOUBLE
inline constexpr bool has_bfloat16_tiles = true;
#else
inline constexpr bool has_bfloat16_tiles = false;
#endif

/// Numbers that the tiles of an operand with so many rows (columns of b) take.
constexpr Index bfloat16_tile_numbers(Index rows, Index depth, int parts) {
  return (rows + 15) / 16 * ((depth + 31) / 32) * parts * 512;
}

/// The tiles of b [depth, cols]. Needs AVX512-BF16.
void pack_right_tiles(const MatrixView& b, int parts, std::uint16_t* to);

/// out = start + a b for the tiles of b, in AMX tiles or with AVX512-BF16; on this thread. As multiply() of
/// core/product.hpp, it requests what is read next.
void multiply_tiles(const MatrixView& a, const std::uint16_t* b, Index cols, int parts, bool amx,
                    const ProductTarget& target, const ReadAhead& ahead = {});

}  // namespace sar
