// SPDX-License-Identifier: MIT

/// WireFormat: the number format of rows in messages. The halo exchange uses it for sizes, packing, unpacking
/// and combining. A new format is a class in wire_format.cpp and a case of make_wire_format(). Thread-safe
/// for disjoint values.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/halo/halo_format.hpp>
#include <sar/config.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Values are numbered row by row in the matrix M with rows M[i] = tensor[rows[i]].
class WireFormat {
 public:
  virtual ~WireFormat() = default;
  /// Returns how many values form an indivisible group: packets, and the ranges of the functions below,
  /// consist of whole groups.
  [[nodiscard]] virtual Index group() const { return 1; }
  /// Returns the bytes of a number of values, a multiple of group().
  [[nodiscard]] virtual Index bytes(Index values) const = 0;
  /// Returns whether values of rows of this type are sent as they are in memory. Then contiguous rows are
  /// sent from there, and rows are received in place, without a copy.
  [[nodiscard]] virtual bool as_stored(NumberType type) const = 0;
  /// out = values [begin, end) of M, for rows of type reals or of a type that is sent as stored.
  virtual void pack(const TypedRows& rows_of_m, const Array<std::int32_t>& rows, Index begin, Index end,
                    std::byte* out) const = 0;
  /// out = values [begin, end) of all halo rows of this rank, counted round after round; they are contiguous
  /// at `values`.
  virtual void pack(const real* values, Index begin, Index end, std::byte* out) const = 0;
  /// out[k] = value k of `packed`
  virtual void unpack(const std::byte* packed, Index values, real* out) const = 0;
  /// Values [begin, end) of M = M op packed, for op sum, max or min; the rows must be distinct.
  virtual void combine(Tensor& tensor, const Array<std::int32_t>& rows, Index begin, Index end,
                       const std::byte* packed, ReduceOp op) const = 0;
};

using WireFormatPtr = std::shared_ptr<const WireFormat>;

/// Returns the format of rows that are sent as they are stored: HaloFormat::exact of reals; HaloFormat::bf16
/// of bfloat16, to which reals are rounded (a `double` to float first); of exact sums 16 bytes a number,
/// which only add_exact_sums() adds.
WireFormatPtr stored_format(NumberType type);

/// Adds rows of exact sums to such rows: values [begin, end) of M = M + packed, for M as in WireFormat with
/// rows of `row_size` sums.
void add_exact_sums(ExactSum* sums, Index row_size, const Array<std::int32_t>& rows, Index begin, Index end,
                    const std::byte* packed);

/// The random words that round a row: those of Random for `key` and the row's id.
struct RowDraws {
  std::array<std::uint32_t, 2> key{};
  std::span<const Index> owned_ids;  ///< ids of the rows of the packed tensor
  Index first_halo_id = 0;           ///< id of halo row 0; the others follow
};

/// Returns HaloFormat::int8 for rows of `row_size` numbers. A `double` is rounded to float first.
WireFormatPtr make_int8_format(Index row_size, const RowDraws& draws);

/// Returns a format for rows of `row_size` numbers. Only those that round at random read `draws`.
WireFormatPtr make_wire_format(HaloFormat format, Index row_size, const RowDraws& draws);
}}  // namespace sar

// The stochastic rounding of HaloFormat::int8. For the sources of comm/ only.

#include <sar/core/isa/isa_begin.hpp>

namespace int8_rounding {

inline constexpr int most = 127;  // the largest multiple of a scale

/// Returns max_j |x_j| / 127, clamped so that 127 times it is finite; 0 for a row of zeros, NaN for a row
/// that is not finite.
inline float scale_of(const real* row, Index n) {
  // The largest bit pattern of |x_j|: patterns are ordered like the numbers, then infinity, NaN.
  std::uint32_t largest = 0;
  for (Index j = 0; j < n; ++j)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(static_cast<float>(row[j])) & 0x7fffffffu);
  if (largest >= 0x7f800000u) return std::numeric_limits<float>::quiet_NaN();
  if (largest == 0) return 0;
  using Limits = std::numeric_limits<float>;
  constexpr float largest_scale = Limits::max() / most * (1 - 0x1p-23f);
  return std::clamp(std::bit_cast<float>(largest) / most, Limits::min(), largest_scale);
}

/// Computes, for n columns of a row with the scale s > 0 and the draws u_j = floor(words_j / 2^8) / 2^24,
///
///     q_j = floor(x_j / s) + (x_j / s - floor(x_j / s) + u_j >= 1)
///
/// clamped to -127 .. 127. A multiple of s is not changed by any draw, and |q_j s - x_j| < s: for that, the
/// quotient is divided, which rounds once, and the draw is added to its fraction only.
inline void round_columns(const real* x, Index n, float s, const std::uint32_t* words, std::int8_t* q) {
  SAR_INDEPENDENT_ITERATIONS
  for (Index j = 0; j < n; ++j) {
    const float u = static_cast<float>(static_cast<std::int32_t>(words[j] >> 8)) * 0x1p-24f;
    const float quotient = static_cast<float>(x[j]) / s;
    const float below = std::floor(quotient);
    const int multiple = static_cast<int>(below) + (quotient - below + u >= 1 ? 1 : 0);
    q[j] = static_cast<std::int8_t>(std::clamp(multiple, -most, most));
  }
}

}  // namespace int8_rounding

#include <sar/core/isa/isa_end.hpp>
