// SPDX-License-Identifier: MIT

// Emulated bfloat16: the parts of b are packed once. Blocks of 48 rows of a are split into a buffer in the
// cache and multiplied with the kernel of product.hpp, which prefetches the next block. A result in bfloat16
// is a buffer of 48 rows in the cache before it is rounded. `high` adds h_a h_b, l_a h_b and h_a l_b in this
// order and so passes over the block of the result three times, from cache. From memory, a is read once.
#include <sar/core/isa/instruction_set.hpp>
#include <sar/core/products/bfloat16_tiles.hpp>
#include <sar/core/products/right_operand.hpp>
#include <sar/core/tensor/typed_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

int num_parts(MatmulPrecision precision) {
  return precision == MatmulPrecision::high ? 2 : 1;
}

/// The high and low parts of a matrix, with the matrix's layout.
class Parts {
 public:
  Parts(const MatrixView& x, int parts) : high_(x.rows * x.cols), low_(parts == 2 ? x.rows * x.cols : 0) {
    split_bfloat16(x, high_.data(), parts == 2 ? low_.data() : nullptr);
    high = low = x.col_step == 1 ? MatrixView{nullptr, x.rows, x.cols, x.cols, 1}
                                 : MatrixView{nullptr, x.rows, x.cols, 1, x.rows};
    high.data = high_.data();
    low.data = low_.data();
  }
  MatrixView high{}, low{};

 private:
  Array<real> high_, low_;
};

constexpr Index block_rows = 48;

/// What is prefetched during the product of the block of rows of a from row i on: its share of `ahead`, or if
/// that is empty, the next block.
ReadAhead block_ahead(const MatrixView& a, Index i, const ReadAhead& ahead) {
  const bool next_block = ahead.first.empty() && a.col_step == 1;
  const auto share = [&](std::span<const std::byte> all) {
    const auto at = [&](Index row) {
      return all.size() * static_cast<std::size_t>(std::min(row, a.rows)) / static_cast<std::size_t>(a.rows);
    };
    return all.subspan(at(i), at(i + block_rows) - at(i));
  };
  return {next_block ? rows_after(a, i + block_rows, block_rows).first : share(ahead.first),
          share(ahead.second)};
}

}  // namespace

ProductMethod product_method(bool of_bfloat16) {
  ProductMethod method{matmul_precision()};
  if (mixed_precision()) method.precision = MatmulPrecision::medium;
  if (sizeof(real) > sizeof(float)) method.precision = MatmulPrecision::highest;
  if (of_bfloat16) method.precision = MatmulPrecision::medium;
  if (method.precision == MatmulPrecision::highest || !has_bfloat16_tiles) return method;
  if (has_amx_bf16())
    method.unit = Bfloat16Unit::amx;
  else if (has_fast_avx512_bf16())
    method.unit = Bfloat16Unit::avx512;
  return method;
}

void RightOperand::pack(const MatrixView& b) {
  b_ = b;
  if (method_.precision == MatmulPrecision::highest) {
    high_.pack(b);
  } else if (method_.unit == Bfloat16Unit::emulated) {
    const int parts = num_parts(method_.precision);
    const Parts of_b(b, parts);
    high_.pack(of_b.high);
    if (parts == 2) low_.pack(of_b.low);
  } else if constexpr (has_bfloat16_tiles) {
    const int parts = num_parts(method_.precision);
    tiles_.resize(static_cast<std::size_t>(bfloat16_tile_numbers(b.cols, b.rows, parts)));
    pack_right_tiles(b, parts, tiles_.data());
  }
}

void RightOperand::pack_or_borrow(const MatrixView& b, Index readable_behind) {
  if (method_.precision != MatmulPrecision::highest) return pack(b);
  b_ = b;
  high_.pack_or_borrow(b, readable_behind);
}

template <class Target>
void RightOperand::multiply_in_unit(const MatrixView& a, const Target& target, const ReadAhead& ahead) const {
  if constexpr (has_bfloat16_tiles) {
    const int parts = num_parts(method_.precision);
    method_.unit == Bfloat16Unit::amx ? multiply_tiles(a, tiles_.data(), b_.cols, parts, target, ahead)
                                      : multiply_vectors(a, tiles_.data(), b_.cols, parts, target, ahead);
  }
}

void RightOperand::multiply(const MatrixView& a, const ProductTarget& target, const ReadAhead& ahead) const {
  if (method_.precision == MatmulPrecision::highest)
    sar::multiply(a, high_, target, ahead);
  else if (method_.unit == Bfloat16Unit::emulated)
    multiply_parts(a, target, ahead);
  else
    multiply_in_unit(a, target, ahead);
}

void RightOperand::multiply(const MatrixView& a, const Bfloat16Target& target, const ReadAhead& ahead) const {
  if (method_.unit != Bfloat16Unit::emulated) return multiply_in_unit(a, target, ahead);
  const Index cols = b_.cols;
  Array<real> sums(block_rows * cols);
  for (Index i = 0; i < a.rows; i += block_rows) {
    const Index rows = std::min(block_rows, a.rows - i);
    Bfloat16* const out = target.out + i * target.stride;
    const bool adds = target.accumulate;
    for (Index r = 0; adds && r < rows; ++r) widen(out + r * target.stride, cols, sums.data() + r * cols);
    ReadAhead next = block_ahead(a, i, ahead);
    if (next.second.empty()) next.second = memory_of(out, rows * target.stride);
    multiply_parts(a.row_range(i, i + rows),
                   {sums.data(), cols, adds ? sums.data() : target.start, adds ? cols : Index{0}}, next);
    for (Index r = 0; r < rows; ++r) narrow(sums.data() + r * cols, cols, out + r * target.stride);
  }
}

void RightOperand::multiply_parts(const MatrixView& a, const ProductTarget& target,
                                  const ReadAhead& ahead) const {
  for (Index i = 0; i < a.rows; i += block_rows) {
    const Parts of_a(a.row_range(i, std::min(a.rows, i + block_rows)), num_parts(method_.precision));
    real* out = target.out + i * target.stride;
    const real* start = target.start == nullptr ? nullptr : target.start + i * target.start_stride;
    sar::multiply(of_a.high, high_, {out, target.stride, start, target.start_stride},
                  block_ahead(a, i, ahead));
    if (method_.precision != MatmulPrecision::high) continue;
    sar::multiply(of_a.low, high_, {out, target.stride, out, target.stride});
    sar::multiply(of_a.high, low_, {out, target.stride, out, target.stride});
  }
}

// Each block of each type is a RightOperand. The constructor packs them in parallel, about 2^16 numbers
// per task. A product with a block-diagonal matrix is one product per block, on the block's columns of x
// and y.

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
