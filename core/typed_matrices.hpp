/// The matrices of all types, packed once for the many products of a pass with few rows of a type each. For
/// implementation files.
#pragma once

#include <sar/core/right_operand.hpp>

#include <vector>

namespace sar::inline SAR_PRECISION {

/// w [types, blocks, rows, cols]: for each type a matrix, or, blocks > 1, a block-diagonal one; or their
/// transposes. Memory: as much as w, but with rows of blocks rounded up to 64 bytes. Products are those of
/// core/right_operand.hpp and may run on several threads at once.
class TypedMatrices {
 public:
  enum class Use { as_given, transposed };
  struct Sizes {
    Index types, blocks, rows, cols;
  };

  /// `w` must stay until the last product.
  TypedMatrices(const real* w, const Sizes& sizes, Use use);

  /// y [n, blocks cols] = x [n, blocks rows] W_type, or with W_type^T and the widths exchanged; row after row,
  /// on this thread.
  void multiply(Index type, const real* x, Index n, real* y) const;

 private:
  Index blocks_, rows_, cols_;  ///< of a block as it is used
  std::vector<RightOperand> operands_;
};

}  // namespace sar
