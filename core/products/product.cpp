// SPDX-License-Identifier: MIT

// Loop order of multiply(): blocks of 48 rows of a > depth blocks (at most 512) > panels of b > tiles of rows
// > the depth of the block. Innermost, one step of the depth loads the vectors of one row of the panel,
// broadcasts one element of a per row of the tile, and does rows x vectors multiply-adds on sums in
// registers.
//
// Bytes moved: from memory, a once, and out once per depth block (written, and read if it is not the first);
// b's panels come from the L2 cache, once per 48 rows of a. A panel of b is stored contiguously, row after
// row of the depth block, padded with zeros to whole vectors.
#include <sar/core/products/product.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/threads/parallel.hpp>

#include <cstring>

#include <sar/core/isa/isa_begin.hpp>

namespace {

using namespace lanes;

#if SAR_VECTOR_BYTES == 64 || defined(__aarch64__)  // 32 vector registers
constexpr int most_vectors = 4;
#else
constexpr int most_vectors = 2;
#endif

constexpr Index most_depth = 512;
constexpr Index block_rows = 48;
constexpr Index prefetch_depth = 16;  // depth steps between two prefetches of a tile: a burst would stall it

/// Returns the rows of a tile of `vectors` vectors: as many as fit in the registers, and a divisor of
/// block_rows.
constexpr int tile_rows(int vectors) {
  return vectors == 4 || (vectors == 2 && most_vectors == 2) ? 6 : vectors == 3 ? 8 : 12;
}

/// Divides the depth into nearly equal blocks of at most most_depth.
Index depth_block(Index depth) {
  const Index blocks = (depth + most_depth - 1) / most_depth;
  return blocks == 0 ? most_depth : (depth + blocks - 1) / blocks;
}

/// The columns of b, divided into panels with nearly equal numbers of vectors.
struct Panels {
  explicit Panels(Index cols)
      : vectors((cols + vector_lanes - 1) / vector_lanes),
        count((vectors + most_vectors - 1) / most_vectors) {}
  [[nodiscard]] Index first_col(Index panel) const { return vectors * panel / count * vector_lanes; }
  Index vectors, count;
};

/// At most block_rows rows of a times one panel of b, over one depth block.
struct PanelProduct {
  MatrixView a;
  const real* b;  ///< row k at b + k * b_step
  Index b_step;
  Index cols;  ///< columns of the panel, without the padding of its last vector
  ProductTarget target;

  /// Advances to the remaining rows.
  void skip_rows(Index rows) {
    a = a.row_range(rows, a.rows);
    target.out += rows * target.stride;
    if (target.start != nullptr) target.start += rows * target.start_stride;
  }
};

/// Copies the first `count` < vector_lanes numbers with moves of fixed sizes.
template <Index piece = vector_lanes / 2>
void copy_some(real* to, const real* from, Index count) {
  if (count & piece) {
    std::memcpy(to, from, piece * sizeof(real));
    to += piece;
    from += piece;
  }
  if constexpr (piece > 1) copy_some<piece / 2>(to, from, count);
}

/// Adds the addend to a finished row of a tile and writes it. The last vector has `last` valid numbers.
template <int vectors>
[[gnu::always_inline]] inline void write_row(const Vector<> (&sum)[vectors], const real* start, real* out,
                                             Index last) {
  SAR_UNROLL
  for (int j = 0; j < vectors; ++j) {
    if (j + 1 < vectors || last == vector_lanes) {
      store(out + j * vector_lanes, start == nullptr ? sum[j] : sum[j] + load(start + j * vector_lanes));
    } else {
      alignas(Vector<>) real some[vector_lanes] = {};
      if (start != nullptr) copy_some(some, start + j * vector_lanes, last);
      store(some, sum[j] + load(some));
      copy_some(out + j * vector_lanes, some, last);
    }
  }
}

/// Computes one tile: the first `rows` rows of a times a panel of `vectors` vectors.
template <int rows, int vectors>
void tile(const PanelProduct& p, OperandPrefetch& prefetch) {
  const Index depth = p.a.cols, prefetched_rows = (rows * prefetch_depth - 1) / std::max<Index>(depth, 1) + 1;
  Vector<> sum[rows][vectors] = {};
  const real *a = p.a.data, *b = p.b;
  for (Index k = 0, row = 0; k < depth; k += prefetch_depth) {
    prefetch.next_part();
    for (const Index end = std::min<Index>(rows, row + prefetched_rows); row < end; ++row)
      prefetch_row_to_write(p.target.out + row * p.target.stride, p.cols);
    for (Index rest = std::min(prefetch_depth, depth - k); rest > 0; --rest) {
      Vector<> right[vectors];
      SAR_UNROLL
      for (int j = 0; j < vectors; ++j) right[j] = load(b + j * vector_lanes);
      SAR_UNROLL
      for (int i = 0; i < rows; ++i) {
        const real left = a[i * p.a.row_step];
        SAR_UNROLL
        for (int j = 0; j < vectors; ++j) sum[i][j] += left * right[j];
      }
      a += p.a.col_step;
      b += p.b_step;
    }
  }
  const ProductTarget& to = p.target;
  SAR_UNROLL
  for (int i = 0; i < rows; ++i)
    write_row(sum[i], to.start == nullptr ? nullptr : to.start + i * to.start_stride, to.out + i * to.stride,
              p.cols - (vectors - 1) * vector_lanes);
}

/// Computes all rows in tiles of `rows` rows, and the remaining rows in lower tiles.
template <int rows, int vectors>
void tiles(PanelProduct p, OperandPrefetch& prefetch) {
  for (; p.a.rows >= rows; p.skip_rows(rows)) tile<rows, vectors>(p, prefetch);
  if constexpr (rows > 1) {
    constexpr int fewer = rows > 4 ? 4 : rows / 2;
    if (p.a.rows > 0) tiles<fewer, vectors>(p, prefetch);
  }
}

/// Selects the tile width at compile time.
template <int vectors = most_vectors>
void multiply_panel(const PanelProduct& p, Index num_vectors, OperandPrefetch& prefetch) {
  if constexpr (vectors > 0) {
    if (num_vectors == vectors)
      tiles<tile_rows(vectors), vectors>(p, prefetch);
    else
      multiply_panel<vectors - 1>(p, num_vectors, prefetch);
  }
}

/// Packs one panel of one depth block of b, row after row; columns beyond the last are 0.
void pack_panel(const MatrixView& b, Index width, real* to) {
  if (b.col_step == 1) {
    const Index whole = b.cols / vector_lanes * vector_lanes;
    for (Index k = 0; k < b.rows; ++k) {
      const real* from = b.data + k * b.row_step;
      Index j = 0;
      for (; j < whole; j += vector_lanes) store(to + j, load(from + j));
      if (j < width) {
        alignas(Vector<>) real some[vector_lanes] = {};
        copy_some(some, from + j, b.cols - j);
        store(to + j, load(some));
      }
      to += width;
    }
  } else {
    std::fill(to, to + b.rows * width, real{0});
    for (Index j = 0; j < b.cols; ++j)
      for (Index k = 0; k < b.rows; ++k) to[k * width + j] = b.data[j * b.col_step + k * b.row_step];
  }
}

}  // namespace

void pack_panels(const MatrixView& b, real* to) {
  const Panels panels(b.cols);
  const Index padded = panels.vectors * vector_lanes;
  parallel_for(b.rows, depth_block(b.rows), [&](Index begin, Index end) {
    for (Index p = 0; p < panels.count; ++p) {
      const Index first = panels.first_col(p), width = panels.first_col(p + 1) - first;
      pack_panel(b.row_range(begin, end).column_range(first, std::min(first + width, b.cols)), width,
                 to + begin * padded + first * (end - begin));
    }
  });
}

void multiply(const MatrixView& a, const PackedMatrix& b, const ProductTarget& target,
              const ReadAhead& ahead) {
  const MatrixView& right = b.matrix();
  if (a.rows == 0 || right.cols == 0) return;
  const Index step = depth_block(a.cols);
  const Panels panels(right.cols);
  const int rows_of_tile = tile_rows(static_cast<int>(panels.first_col(1) / vector_lanes));
  const auto parts = [&](Index rows) {
    return panels.count * ((a.cols + prefetch_depth - 1) / prefetch_depth) *
           ((rows + rows_of_tile - 1) / rows_of_tile);
  };
  OperandPrefetch prefetch(ahead, parts(a.rows));
  const bool prefetches_a = a.col_step == 1 && ahead.first.empty();
  PanelProduct p{};
  for (Index i = 0; i < a.rows; i += block_rows) {
    if (prefetches_a)
      prefetch =
          OperandPrefetch(rows_after(a, i + block_rows, block_rows), parts(std::min(block_rows, a.rows - i)));
    for (Index k = 0; k == 0 || k < a.cols; k += step) {
      p.a = a.row_range(i, std::min(a.rows, i + block_rows)).column_range(k, std::min(a.cols, k + step));
      for (Index panel = 0; panel < panels.count; ++panel) {
        const Index first = panels.first_col(panel), end = panels.first_col(panel + 1);
        p.b_step = b.panels() == nullptr ? right.row_step : end - first;
        p.b = b.panels() == nullptr ? right.data + k * right.row_step + first
                                    : b.panels() + k * panels.vectors * vector_lanes + first * p.a.cols;
        p.cols = std::min(right.cols, end) - first;
        p.target = {target.out + i * target.stride + first, target.stride};
        if (k > 0) {
          p.target.start = p.target.out;
          p.target.start_stride = p.target.stride;
        } else if (target.start != nullptr) {
          p.target.start = target.start + i * target.start_stride + first;
          p.target.start_stride = target.start_stride;
        }
        multiply_panel(p, (end - first) / vector_lanes, prefetch);
      }
    }
  }
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, pack_panels, (const MatrixView& b, real* to), (b, to));
SAR_DISPATCH(void, multiply,
             (const MatrixView& a, const PackedMatrix& b, const ProductTarget& target,
              const ReadAhead& ahead),
             (a, b, target, ahead));

#if SAR_COMPILED_ONCE
namespace sar { inline namespace SAR_PRECISION {

void PackedMatrix::pack(const MatrixView& b) {
  b_ = b;
  memory_.resize(static_cast<std::size_t>(b.rows * ((b.cols + slack - 1) / slack * slack)));
  pack_panels(b, memory_.data());
  panels_ = memory_.data();
}

void PackedMatrix::pack_or_borrow(const MatrixView& b, Index readable_behind) {
  if (b.col_step != 1 || readable_behind < slack) return pack(b);
  b_ = b;
  panels_ = nullptr;
}

}}  // namespace sar
#endif
