/// Dropout masks that are never stored: element (row, column) is a function of the key, the GLOBAL row id and
/// the column, and is drawn again whenever it is needed. It is the same for every distribution of the rows
/// and every number of threads.
#pragma once

#include <sar/core/random.hpp>
#include <sar/core/tensor.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// Element j of row r is dropped when word j % 4 of block j / 4 of Random(key) for row r is below p 2^32.
class DropoutMask {
 public:
  /// Throws Error unless 0 <= p < 1.
  DropoutMask(const RandomKey& key, double p);

  /// factors[i * row_size + j] = 0 or 1 / (1 - p) for the rows row_ids[0], row_ids[1], ... On the calling
  /// thread: for fused kernels, which pass a few rows at a time (at least 128 elements make full use of the
  /// vector units).
  void factors(std::span<const Index> row_ids, Index row_size, real* factors) const noexcept;

  /// out (+)= x * factors; out may be x. Throws ShapeError when shapes differ or there is not one id per row.
  void apply(const Tensor& x, std::span<const Index> row_ids, Tensor& out, bool accumulate = false) const;

  [[nodiscard]] real keep_scale() const noexcept { return scale_; }  ///< 1 / (1 - p)

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t threshold_;
  real scale_;
};

}  // namespace sar
