// SPDX-License-Identifier: MIT

/// Dropout: whether an element (row, column) is dropped is a function of the key, the original id of the row
/// and the column, so it is the same for every partitioning and every number of threads.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/random.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// The parameters of a mask that kernels need.
struct DropoutDraw {
  std::array<std::uint32_t, 2> key;  ///< Philox key
  std::uint32_t threshold;           ///< an element is dropped if its word is below
  real keep_scale;                   ///< 1 / (1 - p)
};

/// A dropout mask. Element j of row r is dropped if word j % 4 of block j / 4 of Random(key) for row r is
/// below p 2^32.
class DropoutMask {
 public:
  /// Throws Error unless 0 <= p < 1.
  DropoutMask(const RandomKey& key, double p);

  /// factors[i * row_size + j] = 0 or 1 / (1 - p) for element j of row row_ids[i]. Single-threaded, for fused
  /// kernels that pass a few rows at a time (at least 128 elements to use the vector units fully).
  void factors(std::span<const Index> row_ids, Index row_size, real* factors) const;

  /// out = relu(x) * factors in one pass. out may be x. NaN stays NaN. Throws ShapeError if the shapes differ
  /// or there is not one id per row, Error if the types differ.
  void apply_to_relu(const TypedRows& x, std::span<const Index> row_ids, TypedRows& out) const;

  /// Returns x * factors, with the columns that x stores: a dropped value is stored as 0. The result equals
  /// that of the dense rows. Throws ShapeError unless there is one id per row.
  [[nodiscard]] std::shared_ptr<const SparseMatrix> apply(const SparseMatrix& x,
                                                          std::span<const Index> row_ids) const;

  [[nodiscard]] real keep_scale() const noexcept { return draw_.keep_scale; }
  [[nodiscard]] const DropoutDraw& draw() const noexcept { return draw_; }

 private:
  DropoutDraw draw_;
};

/// out (+)= keep_scale * grad where y, the result of apply_to_relu(), is positive. out may be grad. Throws
/// ShapeError if the shapes differ.
void relu_dropout_backward(const TypedRows& y, real keep_scale, const TypedRows& grad, TypedRows& out,
                           bool accumulate);

/// The keep-or-drop decisions of a mask for all elements of a tensor, one bit each. The backward pass reads
/// the bits again, which takes less time than drawing again. Copies share the bits.
class DropoutBits {
 public:
  DropoutBits() = default;
  /// Draws the bits for rows with these ids.
  DropoutBits(const DropoutMask& mask, std::span<const Index> row_ids, Index row_size);

  /// Returns false if default-constructed: nothing is dropped.
  [[nodiscard]] explicit operator bool() const noexcept { return words_ != nullptr; }
  /// out (+)= x * factors. out may be x. Throws ShapeError if the shapes differ or do not match the bits.
  void apply(const Tensor& x, Tensor& out, bool accumulate = false) const;
  /// The same for rows `first` and those behind it, which x and out have.
  void apply_to_part(Index first, const Tensor& x, Tensor& out, bool accumulate = false) const;
  /// out = x * factors for rows [first, first + count), to whose first elements x and out point.
  /// Single-threaded.
  void apply_rows(Index first, Index count, const real* x, real* out) const;

  // For fused kernels: bit row % 32 of words(row)[j] is set if element (row, j) is kept.
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

}}  // namespace sar
