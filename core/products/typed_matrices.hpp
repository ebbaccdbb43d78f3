// SPDX-License-Identifier: MIT

/// The matrices of all types, packed once for a pass with many products of few rows each. For implementation
/// files.
#pragma once

#include <sar/core/products/right_operand.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The matrices w [types, blocks, rows, cols], or their transposes: per type one matrix or, with blocks > 1,
/// a block-diagonal one. Memory: as much as w, with the rows of blocks rounded up to 64 bytes. Products are
/// those of core/products/right_operand.hpp. Thread-safe.
class TypedMatrices {
 public:
  enum class Use { as_given, transposed };
  struct Sizes {
    Index types, blocks, rows, cols;
  };

  /// `w` must outlive the last product.
  TypedMatrices(const real* w, const Sizes& sizes, Use use);

  /// y [n, blocks cols] = x [n, blocks rows] W_type, or x W_type^T with rows and cols exchanged; contiguous
  /// rows, single-threaded.
  void multiply(Index type, const real* x, Index n, real* y) const;

 private:
  Index blocks_, rows_, cols_;  ///< of a block, after transposing
  std::vector<RightOperand> operands_;
};

}}  // namespace sar
