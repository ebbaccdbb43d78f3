// SPDX-License-Identifier: MIT

/// The single-threaded kernel of all matrix products: out = start + a b, with `a` unpacked. For
/// implementation files of core/.
///
/// Register blocking: a tile of out, 6 rows x 4 vectors with 32 vector registers (6 x 2 with 16), stays in
/// registers while the products of one depth block (at most 512) are added. Cache blocking: a panel of `b`,
/// as wide as a tile, is used for 48 rows of `a`, so that the panel and these rows stay in the L1 and L2
/// caches. The data needed next are prefetched, a few cache lines after every 16 steps of the depth. The
/// remaining columns use narrower, higher tiles. Source: Goto and van de Geijn, Anatomy of High-Performance
/// Matrix Multiplication, 2008, but without packing `a`: its elements are broadcast from where they are, once
/// per panel.
///
/// Each element is summed in the order of the depth, block after block: its bits depend neither on other rows
/// and columns nor on the number of threads.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/numbers.hpp>
#include <sar/core/simd/loop_hints.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

// Prefetches of memory that is read after a product, a few cache lines at a time: a burst of them would
// stall the product, because a core has few cache misses in flight.

/// Memory that is read after a product, and prefetched during it.
struct ReadAhead {
  std::span<const std::byte> first, second;
};

/// Returns the memory of n numbers.
template <class Number>
std::span<const std::byte> memory_of(const Number* numbers, Index n) {
  return {reinterpret_cast<const std::byte*>(numbers), static_cast<std::size_t>(n) * sizeof(Number)};
}

/// Prefetches memory to the second-level cache, in equal parts.
class OperandPrefetch {
 public:
  OperandPrefetch(const ReadAhead& ahead, Index parts)
      : streams_{Stream(ahead.first, parts), Stream(ahead.second, parts)} {}
  void next_part() {
    for (Stream& s : streams_) {
      const Index bytes = std::min<Index>(s.end - s.next, s.step);
      prefetch_bytes(s.next, bytes);
      s.next += bytes;
    }
  }

 private:
  struct Stream {
    Stream(std::span<const std::byte> memory, Index parts)
        : next(memory.data()),
          end(next + memory.size()),
          step((static_cast<Index>(memory.size()) / std::max<Index>(parts, 1) / line + 1) * line) {}
    static constexpr Index line = 64;
    const std::byte *next, *end;
    Index step;
  };
  Stream streams_[2];
};

/// A matrix view: element (i, j) is data[i * row_step + j * col_step]; one of the steps is 1. The elements of
/// a view of bfloat16 numbers are those of `bfloat16` in place of data, which is null then; only RightOperand
/// (core/products/right_operand.hpp) multiplies them. Both may be null in a view without elements.
struct MatrixView {
  const real* data;
  Index rows, cols;
  Index row_step, col_step;
  const Bfloat16* bfloat16 = nullptr;

  [[nodiscard]] MatrixView transposed() const { return {data, cols, rows, col_step, row_step, bfloat16}; }
  [[nodiscard]] MatrixView row_range(Index begin, Index end) const {
    return from(begin * row_step, end - begin, cols);
  }
  [[nodiscard]] MatrixView column_range(Index begin, Index end) const {
    return from(begin * col_step, rows, end - begin);
  }

 private:
  [[nodiscard]] MatrixView from(Index first, Index num_rows, Index num_cols) const {
    return {data == nullptr ? nullptr : data + first,        num_rows, num_cols, row_step, col_step,
            bfloat16 == nullptr ? nullptr : bfloat16 + first};
  }
};

/// The right operand of a product in the layout of the kernel: packed panels, or the matrix itself.
class PackedMatrix {
 public:
  /// Packs `b` into panels. Reuses the memory of the previous call.
  void pack(const MatrixView& b);
  /// Uses `b` without packing, which is faster for products with few rows of a. Packs it if its rows are not
  /// contiguous or if fewer than `slack` numbers behind its last row are readable.
  void pack_or_borrow(const MatrixView& b, Index readable_behind);

  [[nodiscard]] const MatrixView& matrix() const { return b_; }
  [[nodiscard]] const real* panels() const { return panels_; }  ///< null: unpacked, read `matrix()`

 private:
  static constexpr Index slack = 64 / static_cast<Index>(sizeof(real));  // one vector

  MatrixView b_{};
  const real* panels_ = nullptr;
  Array<real> memory_;
};

/// The output of a product and the addend: row i of out is at out + i * stride, row i of the addend at start
/// + i * start_stride (stride 0: the same row for all; null: no addend). The addend may be out itself.
struct ProductTarget {
  real* out;
  Index stride;
  const real* start = nullptr;
  Index start_stride = 0;
};

/// The result of a product in bfloat16: out = start + a b, where `start` is one row for all (null: none), or,
/// if `accumulate`, out + a b. Row i is at out + i * stride. Sums are in single precision and rounded once.
struct Bfloat16Target {
  Bfloat16* out;
  Index stride;
  const real* start = nullptr;
  bool accumulate = false;
};

/// Returns the next `count` rows after row `first` of a matrix with contiguous rows; they need not exist.
inline ReadAhead rows_after(const MatrixView& a, Index first, Index count) {
  if (a.bfloat16 != nullptr) return {memory_of(a.bfloat16 + first * a.row_step, count * a.row_step), {}};
  return {memory_of(a.data + first * a.row_step, count * a.row_step), {}};
}

/// out [a.rows, b cols] = start + a b. Prefetches `ahead`; if it is empty and the rows of `a` are contiguous,
/// prefetches the next rows of `a`.
void multiply(const MatrixView& a, const PackedMatrix& b, const ProductTarget& target,
              const ReadAhead& ahead = {});

/// Writes the panels of `b` to `to`: rows * (cols rounded up to 64 bytes) numbers.
void pack_panels(const MatrixView& b, real* to);

}}  // namespace sar
