// SPDX-License-Identifier: MIT

/// The right operand of products in a given MatmulPrecision, and the products with it. For implementation
/// files.
///
/// `highest` uses the kernel of core/products/product.hpp. The others split each factor x into a high part h
/// (x rounded to bfloat16) and, for `high`, a low part l (x - h rounded to bfloat16), and compute
///
///     medium   h_a h_b              high   h_a h_b + l_a h_b + h_a l_b
///
/// with sums in single precision: either with instructions for pairs of bfloat16 numbers
/// (core/products/bfloat16_tiles.hpp), or with the kernel of core/products/product.hpp on parts stored in
/// single precision, in which products of bfloat16 numbers are exact. The two differ by the rounding of their
/// sums.
#pragma once

#include <sar/core/products/product.hpp>
#include <sar/core/threads/mixed_precision.hpp>

#include <cstdint>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// How bfloat16 numbers are multiplied.
enum class Bfloat16Unit { emulated, avx512, amx };

/// The precision and the unit of a product.
struct ProductMethod {
  MatmulPrecision precision = MatmulPrecision::highest;
  Bfloat16Unit unit = Bfloat16Unit::emulated;
};

/// Returns matmul_precision() with the best unit of instruction_set(); `highest` in double precision, and
/// `medium` in mixed precision, and where the result, or both operands, are stored in bfloat16. An operand in
/// bfloat16 beside one of reals does not round the other.
[[nodiscard]] ProductMethod product_method(bool of_bfloat16 = false);

/// The right operand b of products out = start + a b.
class RightOperand {
 public:
  explicit RightOperand(ProductMethod method) : method_(method) {}

  /// Packs b [depth, cols], which must outlive the last product. Reuses the memory of the previous call.
  void pack(const MatrixView& b);
  /// The same without packing where possible, for products with few rows: see PackedMatrix.
  void pack_or_borrow(const MatrixView& b, Index readable_behind);

  /// out [a.rows, cols] = start + a b, single-threaded.
  void multiply(const MatrixView& a, const ProductTarget& target, const ReadAhead& ahead = {}) const;
  /// The same in bfloat16. A row of out is written after those of `a` that have its number, and 47 behind it,
  /// were read.
  void multiply(const MatrixView& a, const Bfloat16Target& target, const ReadAhead& ahead = {}) const;

 private:
  /// With the instructions of method_.unit.
  template <class Target>
  void multiply_in_unit(const MatrixView& a, const Target& target, const ReadAhead& ahead) const;
  void multiply_parts(const MatrixView& a, const ProductTarget& target, const ReadAhead& ahead) const;

  ProductMethod method_;
  PackedMatrix high_, low_;  // with `highest`: b itself, and unused
  Array<std::uint16_t> tiles_;
  MatrixView b_{};
};

/// Splits x into high parts and, unless `low` is null, low parts; bfloat16 numbers are their high parts.
/// Element (i, j) is stored at i * x.cols + j if the rows of x are contiguous, and at j * x.rows + i
/// otherwise.
void split_bfloat16(const MatrixView& x, real* high, real* low);

/// The matrices of all types, packed once for a pass with many products of few rows each: the matrices w
/// [types, blocks, rows, cols], or their transposes: per type one matrix or, with blocks > 1, a
/// block-diagonal one. Memory: as much as w, with the rows of blocks rounded up to 64 bytes. Products are
/// those of RightOperand. Thread-safe.
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
