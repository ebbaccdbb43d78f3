/// The kernel of all matrix products, on one thread: out = start + a b, where `a` is read where it lies. For
/// implementation files of core/.
///
/// A tile of out, 6 rows x 4 vectors where there are 32 vector registers (6 x 2 with 16), stays in registers
/// while the products of one depth block (at most 512) are added. A panel of `b`, as wide as a tile, serves
/// 48 rows of `a`, so that a panel and these rows stay in the first and second cache; what is read next is
/// requested meanwhile, a few lines after every 16 steps of the depth. What is left at the end of the columns
/// is a narrower and higher tile. (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication,
/// 2008, without their packed `a`: each of its elements is broadcast from where it lies, once for each
/// panel.)
///
/// Each element is a sum in the order of the depth, block after block: its bits depend neither on the other
/// rows and columns nor on threads.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/core/requests.hpp>

namespace sar::inline SAR_PRECISION {

/// Element (i, j) is data[i * row_step + j * col_step]; one of the steps is 1.
struct MatrixView {
  const real* data;
  Index rows, cols;
  Index row_step, col_step;

  [[nodiscard]] MatrixView transposed() const { return {data, cols, rows, col_step, row_step}; }
  [[nodiscard]] MatrixView row_range(Index begin, Index end) const {
    return {data + begin * row_step, end - begin, cols, row_step, col_step};
  }
  [[nodiscard]] MatrixView column_range(Index begin, Index end) const {
    return {data + begin * col_step, rows, end - begin, row_step, col_step};
  }
};

/// The right operand of a product as the kernel reads it: panels in accounted memory, or where it lies.
class PackedMatrix {
 public:
  /// Copies `b` into panels. The memory of the last call is used again.
  void pack(const MatrixView& b);
  /// `b` where it lies, which pays off where few rows are multiplied with it; or pack(b) when its rows do not
  /// lie as a panel's, or fewer than `slack` numbers behind its last row may be read.
  void pack_or_borrow(const MatrixView& b, Index readable_behind);

  [[nodiscard]] const MatrixView& matrix() const { return b_; }
  [[nodiscard]] const real* panels() const { return panels_; }  ///< null: read `matrix()`

 private:
  static constexpr Index slack = 64 / static_cast<Index>(sizeof(real));  // a vector

  MatrixView b_{};
  const real* panels_ = nullptr;
  Array<real> memory_;
};

/// Where a product goes, and what is added to it: row i of out is at out + i * stride, and row i of the
/// addend at start + i * start_stride (stride 0: one row for all; null: nothing is added). The addend may be
/// out itself.
struct ProductTarget {
  real* out;
  Index stride;
  const real* start = nullptr;
  Index start_stride = 0;
};

/// The rows of a matrix that lies row after row from `first` on. There may be fewer.
inline ReadAhead rows_after(const MatrixView& a, Index first, Index count) {
  return {{a.data + first * a.row_step, static_cast<std::size_t>(count * a.row_step)}, {}};
}

/// out [a.rows, b cols] = start + a b. `ahead` is requested meanwhile; without it, where `a` lies row after
/// row, its next rows.
void multiply(const MatrixView& a, const PackedMatrix& b, const ProductTarget& target,
              const ReadAhead& ahead = {});

/// Writes the panels of `b` to rows * (cols, rounded up to 64 bytes) numbers.
void pack_panels(const MatrixView& b, real* to);

}  // namespace sar
