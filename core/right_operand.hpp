/// The right operand of products under a MatmulPrecision, and the products with it. For implementation
/// files.
///
/// `highest` is the kernel of core/product.hpp, or a BLAS (core/blas_product.hpp). The others split each
/// factor x into a high part h, x rounded to bfloat16, and for `high` a low part l, x - h rounded to
/// bfloat16, and compute
///
///     medium   h_a h_b              high   h_a h_b + l_a h_b + h_a l_b
///
/// with sums in single precision: by instructions for pairs of bfloat16 numbers (core/bfloat16_tiles.hpp), or
/// by the kernel of core/product.hpp on parts that are stored in single precision, in which products of
/// bfloat16 numbers are exact. The two differ by the rounding of their sums.
#pragma once

#include <sar/core/matmul_precision.hpp>
#include <sar/core/product.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// What multiplies bfloat16 numbers.
enum class Bfloat16Unit { emulated, avx512, amx };

struct ProductMethod {
  MatmulPrecision precision = MatmulPrecision::highest;
  Bfloat16Unit unit = Bfloat16Unit::emulated;
};

/// matmul_precision() on the best unit of instruction_set(); `highest` in double precision.
[[nodiscard]] ProductMethod product_method();

class RightOperand {
 public:
  explicit RightOperand(ProductMethod method) : method_(method) {}

  /// Takes b [depth, cols], which must stay until the last product. The memory of the last call is used
  /// again.
  void pack(const MatrixView& b);
  /// The same, for few rows: see PackedMatrix.
  void pack_or_borrow(const MatrixView& b, Index readable_behind);

  /// out [a.rows, cols] = start + a b, on this thread
  void multiply(const MatrixView& a, const ProductTarget& target, const ReadAhead& ahead = {}) const;

 private:
  void multiply_parts(const MatrixView& a, const ProductTarget& target) const;

  ProductMethod method_;
  PackedMatrix high_, low_;  // `highest`: b itself and nothing
  Array<std::uint16_t> tiles_;
  MatrixView b_{};
  bool by_blas_ = false;
};

/// The high parts of x, and the low ones unless `low` is null: element (i, j) of x at i * x.cols + j where x
/// lies row after row, else at j * x.rows + i.
void split_bfloat16(const MatrixView& x, real* high, real* low);

}  // namespace sar
