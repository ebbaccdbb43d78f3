#include <sar/core/parallel.hpp>
#include <sar/core/product.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

#if defined(__clang__)
#define SAR_UNROLL _Pragma("unroll")
#else
#define SAR_UNROLL _Pragma("GCC unroll 16")
#endif

#include <sar/core/isa_begin.hpp>

namespace {

constexpr Index lanes = SAR_VECTOR_BYTES / static_cast<Index>(sizeof(real));
using Vector [[gnu::vector_size(SAR_VECTOR_BYTES)]] = real;

#if SAR_VECTOR_BYTES == 64 || defined(__aarch64__)  // 32 vector registers
constexpr int most_vectors = 4;
#else
constexpr int most_vectors = 2;
#endif

constexpr Index most_depth = 512;
constexpr Index block_rows = 48;
constexpr Index request_depth = 16;  // rows of b between two requests of a tile: a burst would stall it

/// Rows of a tile of so many vectors: as many as the registers hold, and a divisor of block_rows.
constexpr int tile_rows(int vectors) {
  return vectors == 4 || (vectors == 2 && most_vectors == 2) ? 6 : vectors == 3 ? 8 : 12;
}

/// The depth is cut into nearly equal blocks of at most most_depth.
Index depth_block(Index depth) {
  const Index blocks = (depth + most_depth - 1) / most_depth;
  return blocks == 0 ? most_depth : (depth + blocks - 1) / blocks;
}

/// The columns of b, cut into panels of nearly equal numbers of vectors.
struct Panels {
  explicit Panels(Index cols)
      : vectors((cols + lanes - 1) / lanes), count((vectors + most_vectors - 1) / most_vectors) {}
  [[nodiscard]] Index first_col(Index panel) const { return vectors * panel / count * lanes; }
  Index vectors, count;
};

/// Rows of a, at most block_rows, times a panel of b, over one depth block.
struct PanelProduct {
  MatrixView a;
  const real* b;  ///< row k at b + k * b_step
  Index b_step;
  Index cols;  ///< of the panel, without those that fill up its last vector
  ProductTarget target;

  /// Goes on after some rows.
  void skip_rows(Index rows) {
    a = a.row_range(rows, a.rows);
    target.out += rows * target.stride;
    if (target.start != nullptr) target.start += rows * target.start_stride;
  }
};

Vector load(const real* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
void store(real* to, const Vector& v) {
  std::memcpy(to, &v, sizeof v);
}

/// The first `count` < lanes numbers, moved in pieces of fixed sizes.
template <Index piece = lanes / 2>
void copy_some(real* to, const real* from, Index count) {
  if (count & piece) {
    std::memcpy(to, from, piece * sizeof(real));
    to += piece;
    from += piece;
  }
  if constexpr (piece > 1) copy_some<piece / 2>(to, from, count);
}

/// Adds the row of the addend to a finished row of a tile, and writes it. Of the last vector, `last` numbers
/// are there.
template <int vectors>
[[gnu::always_inline]] inline void write_row(const Vector (&sum)[vectors], const real* start, real* out,
                                             Index last) {
  SAR_UNROLL
  for (int j = 0; j < vectors; ++j) {
    if (j + 1 < vectors || last == lanes) {
      store(out + j * lanes, start == nullptr ? sum[j] : sum[j] + load(start + j * lanes));
    } else {
      alignas(Vector) real some[lanes] = {};
      if (start != nullptr) copy_some(some, start + j * lanes, last);
      store(some, sum[j] + load(some));
      copy_some(out + j * lanes, some, last);
    }
  }
}

/// The first `rows` rows of a panel of `vectors` vectors.
template <int rows, int vectors>
void tile(const PanelProduct& p, Requests& requests) {
  const Index depth = p.a.cols, requested_rows = (rows * request_depth - 1) / std::max<Index>(depth, 1) + 1;
  Vector sum[rows][vectors] = {};
  const real *a = p.a.data, *b = p.b;
  for (Index k = 0, row = 0; k < depth; k += request_depth) {
    requests.next_part();
    for (const Index end = std::min<Index>(rows, row + requested_rows); row < end; ++row)
      for (Index j = 0; j < p.cols; j += cache_line)
        __builtin_prefetch(p.target.out + row * p.target.stride + j, 1);
    for (Index rest = std::min(request_depth, depth - k); rest > 0; --rest) {
      Vector right[vectors];
      SAR_UNROLL
      for (int j = 0; j < vectors; ++j) right[j] = load(b + j * lanes);
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
              p.cols - (vectors - 1) * lanes);
}

/// All rows in tiles of `rows` rows; what is left in lower ones.
template <int rows, int vectors>
void tiles(PanelProduct p, Requests& requests) {
  for (; p.a.rows >= rows; p.skip_rows(rows)) tile<rows, vectors>(p, requests);
  if constexpr (rows > 1) {
    constexpr int fewer = rows > 4 ? 4 : rows / 2;
    if (p.a.rows > 0) tiles<fewer, vectors>(p, requests);
  }
}

template <int vectors = most_vectors>
void multiply_panel(const PanelProduct& p, Index num_vectors, Requests& requests) {
  if constexpr (vectors > 0) {
    if (num_vectors == vectors)
      tiles<tile_rows(vectors), vectors>(p, requests);
    else
      multiply_panel<vectors - 1>(p, num_vectors, requests);
  }
}

/// One panel of one depth block of b, row after row; columns beyond the last are 0.
void pack_panel(const MatrixView& b, Index width, real* to) {
  if (b.col_step == 1) {
    const Index whole = b.cols / lanes * lanes;
    for (Index k = 0; k < b.rows; ++k) {
      const real* from = b.data + k * b.row_step;
      Index j = 0;
      for (; j < whole; j += lanes) store(to + j, load(from + j));
      if (j < width) {
        alignas(Vector) real some[lanes] = {};
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
  const Index padded = panels.vectors * lanes;
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
  const int rows_of_tile = tile_rows(static_cast<int>(panels.first_col(1) / lanes));
  const auto parts = [&](Index rows) {
    return panels.count * ((a.cols + request_depth - 1) / request_depth) *
           ((rows + rows_of_tile - 1) / rows_of_tile);
  };
  Requests requests(ahead, parts(a.rows));
  const bool requests_a = a.col_step == 1 && ahead.first.empty();
  PanelProduct p{};
  for (Index i = 0; i < a.rows; i += block_rows) {
    if (requests_a)
      requests = Requests(rows_after(a, i + block_rows, block_rows), parts(std::min(block_rows, a.rows - i)));
    for (Index k = 0; k == 0 || k < a.cols; k += step) {
      p.a = a.row_range(i, std::min(a.rows, i + block_rows)).column_range(k, std::min(a.cols, k + step));
      for (Index panel = 0; panel < panels.count; ++panel) {
        const Index first = panels.first_col(panel), end = panels.first_col(panel + 1);
        p.b_step = b.panels() == nullptr ? right.row_step : end - first;
        p.b = b.panels() == nullptr ? right.data + k * right.row_step + first
                                    : b.panels() + k * panels.vectors * lanes + first * p.a.cols;
        p.cols = std::min(right.cols, end) - first;
        p.target = {target.out + i * target.stride + first, target.stride};
        if (k > 0) {
          p.target.start = p.target.out;
          p.target.start_stride = p.target.stride;
        } else if (target.start != nullptr) {
          p.target.start = target.start + i * target.start_stride + first;
          p.target.start_stride = target.start_stride;
        }
        multiply_panel(p, (end - first) / lanes, requests);
      }
    }
  }
}

#include <sar/core/isa_end.hpp>

SAR_DISPATCH(void, pack_panels, (const MatrixView& b, real* to), (b, to));
SAR_DISPATCH(void, multiply,
             (const MatrixView& a, const PackedMatrix& b, const ProductTarget& target,
              const ReadAhead& ahead),
             (a, b, target, ahead));

#if SAR_COMPILED_ONCE
namespace sar::inline SAR_PRECISION {

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

}  // namespace sar
#endif
