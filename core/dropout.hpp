/// Dropout: element (row, column) is dropped or not by a draw that is a function of the key, the GLOBAL row
/// id and the column. It is the same for every distribution of the rows and every number of threads.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/core/random.hpp>
#include <sar/core/tensor.hpp>

#include <array>
#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION {

/// What the kernels know of a mask.
struct DropoutDraw {
  std::array<std::uint32_t, 2> key;  ///< of Philox
  std::uint32_t threshold;           ///< words below it drop an element
  real keep_scale;                   ///< 1 / (1 - p)
};

/// Element j of row r is dropped when word j % 4 of block j / 4 of Random(key) for row r is below p 2^32.
class DropoutMask {
 public:
  /// Throws Error unless 0 <= p < 1.
  DropoutMask(const RandomKey& key, double p);

  /// factors[i * row_size + j] = 0 or 1 / (1 - p) for the rows row_ids[0], row_ids[1], ... On the calling
  /// thread: for fused kernels, which pass a few rows at a time (at least 128 elements make full use of the
  /// vector units).
  void factors(std::span<const Index> row_ids, Index row_size, real* factors) const;

  /// out (+)= x * factors; out may be x. Throws ShapeError when shapes differ or there is not one id per row.
  void apply(const Tensor& x, std::span<const Index> row_ids, Tensor& out, bool accumulate = false) const;

  /// out = relu(x) * factors, in one pass; out may be x. NaN stays. Throws ShapeError as apply().
  void apply_to_relu(const Tensor& x, std::span<const Index> row_ids, Tensor& out) const;

  [[nodiscard]] real keep_scale() const noexcept { return draw_.keep_scale; }
  [[nodiscard]] const DropoutDraw& draw() const noexcept { return draw_; }

 private:
  DropoutDraw draw_;
};

/// out (+)= keep_scale * grad where the result y of apply_to_relu() is positive; out may be grad. Throws
/// ShapeError when shapes differ.
void relu_dropout_backward(const Tensor& y, real keep_scale, const Tensor& grad, Tensor& out,
                           bool accumulate);

/// The draws of a mask for all elements of a tensor, a bit for each: what the backward pass reads again,
/// because a bit costs less memory traffic than a draw costs time. Copies share the bits.
class DropoutBits {
 public:
  DropoutBits() = default;
  DropoutBits(const DropoutMask& mask, std::span<const Index> row_ids, Index row_size);

  /// False when default-constructed: nothing is dropped.
  [[nodiscard]] explicit operator bool() const noexcept { return words_ != nullptr; }
  /// out (+)= x * factors; out may be x. Throws ShapeError when shapes differ or x is not of the size of the
  /// draws.
  void apply(const Tensor& x, Tensor& out, bool accumulate = false) const;
  /// out = x * factors of rows [first, first + count), on this thread; x and out point to the first of them.
  void apply_rows(Index first, Index count, const real* x, real* out) const;

  // For fused kernels. Bit row % 32 of words(row)[j]: whether element (row, j) is kept.
  static constexpr Index rows_of_word = 32;
  [[nodiscard]] const std::uint32_t* words(Index row) const noexcept {
    return words_->data() + row / rows_of_word * row_size_;
  }
  [[nodiscard]] real keep_scale() const noexcept { return keep_scale_; }

 private:
  std::shared_ptr<const Array<std::uint32_t>> words_;  // [rows / 32 rounded up, row_size]
  Index num_rows_ = 0, row_size_ = 0;
  real keep_scale_ = 1;
};

}  // namespace sar
