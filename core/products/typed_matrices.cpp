// SPDX-License-Identifier: MIT

// Each block of each type is a RightOperand. The constructor packs them in parallel, about 2^16 numbers
// per task. A product with a block-diagonal matrix is one product per block, on the block's columns of x
// and y.
#include <sar/core/products/typed_matrices.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

TypedMatrices::TypedMatrices(const real* w, const Sizes& sizes, Use use)
    : blocks_(sizes.blocks),
      rows_(sizes.rows),
      cols_(sizes.cols),
      operands_(sizes.types * sizes.blocks, RightOperand(product_method())) {
  constexpr Index packed_at_once = Index{1} << 16;
  const Index size = rows_ * cols_;
  parallel_for_each(std::ssize(operands_), std::max<Index>(1, packed_at_once / std::max<Index>(size, 1)),
                    [&](Index i) {
                      const MatrixView block{w + i * size, sizes.rows, sizes.cols, sizes.cols, 1};
                      operands_[i].pack(use == Use::transposed ? block.transposed() : block);
                    });
  if (use == Use::transposed) std::swap(rows_, cols_);
}

void TypedMatrices::multiply(Index type, const real* x, Index n, real* y) const {
  const MatrixView all{x, n, blocks_ * rows_, blocks_ * rows_, 1};
  for (Index b = 0; b < blocks_; ++b)
    operands_[type * blocks_ + b].multiply(all.column_range(b * rows_, (b + 1) * rows_),
                                           {y + b * cols_, blocks_ * cols_});
}

}}  // namespace sar
