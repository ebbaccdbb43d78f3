// SPDX-License-Identifier: MIT

// Two passes over the operands: the largest magnitude of each column, as an integer in the order of the bits,
// and the sums. A task has a range of rows and of columns of a. It packs 128 rows of its operands as integers
// in doubles, a vector of columns of a and three of b side by side, and multiplies them in tiles of 8 x 3
// (AVX-512) or 4 x 3 vectors of sums in registers. The sum of 1,024 rows (512 with three parts), at most
// 2^53, is divided into a multiple of 2^26 and the rest, which are added to two sums; both stay below 2^53
// units for 2^36 rows. So all additions are exact, and tasks and ranks add theirs in any order.
//
// Bytes moved: the operands twice. Operations: one multiply-add in double precision per product (six with
// three parts, which is what the product of 63 bits takes without its last parts). Products here are exact,
// so that it does not matter which of them the compiler fuses with an addition.
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/products/exact_product.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <type_traits>

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index lanes_of_double = SAR_VECTOR_BYTES / 8;
typedef double Doubles __attribute__((vector_size(lanes_of_double * 8)));  // NOLINT: of constant size
typedef double DoublesInMemory __attribute__((vector_size(lanes_of_double * 8), aligned(8)));  // NOLINT

/// A memcpy of 64 bytes would take two moves to the stack, and the load of them would wait for both (GCC 12).
[[gnu::always_inline]] inline Doubles load_doubles(const double* from) {
  return *reinterpret_cast<const DoublesInMemory*>(from);
}

constexpr Index digits = 21;                             // bits of a part of a number
constexpr Index most_parts = sizeof(real) == 4 ? 1 : 3;  // parts of a number
constexpr Index chunk_rows = 128;
constexpr Index exact_rows = most_parts == 1 ? 1024 : 512;  // whose sums of products are below 2^53
constexpr Index tile_rows = lanes_of_double;  // columns of a
constexpr Index tile_vectors = 3;
constexpr Index tile_columns = tile_vectors * lanes_of_double;  // columns of b

using Bits = std::conditional_t<sizeof(real) == 4, std::int32_t, std::int64_t>;

/// The numbers of one operand as integers: part s of number x of column j is the s-th group of 21 bits of
/// x * scale[j].
struct Columns {
  const RowOperand& rows;
  Index count;  // of the operand
  bool ones;    // behind them a column of ones
  std::vector<double> scale, unscale;

  [[nodiscard]] Index total() const { return count + (ones ? 1 : 0); }
};

/// largest[j] = max(largest[j], the bits of |x[j]|), which are in the order of the magnitudes, NaN above all.
void largest_bits(const MatrixView& rows, Bits* largest) {
  for (Index i = 0; i < rows.rows; ++i) {
    const real* x = rows.data + i * rows.row_step;
    for (Index j = 0; j < rows.cols; ++j) {
      const Bits magnitude = std::bit_cast<Bits>(std::abs(x[j]));
      largest[j] = largest[j] < magnitude ? magnitude : largest[j];
    }
  }
}

constexpr double to_integer = 6755399441055744.0;  // 1.5 * 2^52: rounds what it is added to
constexpr auto next_part = static_cast<double>(Index{1} << digits);

/// The parts of `width` numbers, `part_size` apart.
template <class Width>
void pack_numbers(const real* from, const double* scale, Width width, Index part_size, double* to) {
  double rest[tile_columns];
  for (Index j = 0; j < width; ++j) rest[j] = static_cast<double>(from[j]) * scale[j];
  for (Index s = 0; s < most_parts; ++s, to += part_size)
    for (Index j = 0; j < width; ++j) {
      const double integer = (rest[j] + to_integer) - to_integer;
      to[j] = integer;
      rest[j] = (rest[j] - integer) * next_part;
    }
}

/// to = integers of `width` columns from `first` on, [columns / width] panels of [rows, width], for each
/// part; columns that fill the last panel are 0.
template <Index width>
void pack(const Columns& columns, const MatrixView& rows, Index count, Index first, Index end, double* to) {
  const Index panels = (end - first + width - 1) / width, part_size = panels * count * width;
  for (Index p = 0; p < panels; ++p) {
    const Index begin = first + p * width, numbers = std::min(columns.count, end) - begin;
    double* panel = to + p * count * width;
    if (numbers < width)
      for (Index s = 0; s < most_parts; ++s) std::fill_n(panel + s * part_size, count * width, 0.0);
    for (Index i = 0; i < count; ++i, panel += width) {
      const real* from = rows.data + i * rows.row_step + begin;
      if (numbers >= width)
        pack_numbers(from, columns.scale.data() + begin, std::integral_constant<Index, width>(), part_size,
                     panel);
      else
        pack_numbers(from, columns.scale.data() + begin, std::max<Index>(numbers, 0), part_size, panel);
      if (columns.ones && begin <= columns.count && columns.count < end && columns.count < begin + width)
        panel[columns.count - begin] = 1;
    }
  }
}

/// sum [tile_rows, tile_columns] = a^T b over `count` rows of packed panels.
[[gnu::noinline]] void multiply_tile(Index count, const double* a, const double* b, double* sum) {
  Doubles sums[tile_rows][tile_vectors] = {};
  for (Index k = 0; k < count; ++k, a += tile_rows, b += tile_columns) {
    Doubles right[tile_vectors];
    for (Index j = 0; j < tile_vectors; ++j) right[j] = load_doubles(b + j * lanes_of_double);
    for (Index i = 0; i < tile_rows; ++i) {
      const double left = a[i];
      for (Index j = 0; j < tile_vectors; ++j) sums[i][j] += left * right[j];
    }
  }
  std::memcpy(sum, sums, sizeof sums);
}

/// Sums on a grid: multiples of 2^26, and the rest; for each level of parts.
struct GridSums {
  Array<double> high, low;  // [levels, rows, columns]

  explicit GridSums(Index numbers) : high(numbers, 0.0), low(numbers, 0.0) {}
  void add(Index at, const double* sums, Index count) {
    constexpr double to_grid = 453347182355485940514816.0;  // 1.5 * 2^78
    double *const to_high = high.data() + at, *const to_low = low.data() + at;
    SAR_INDEPENDENT_ITERATIONS
    for (Index j = 0; j < count; ++j) {
      const double multiple = (sums[j] + to_grid) - to_grid;
      to_high[j] += multiple;
      to_low[j] += sums[j] - multiple;
    }
  }
};

/// The products of rows [begin, end) and columns [first, last) of a, to sums [levels, last - first, columns
/// of b].
void add_products(const Columns& a, const Columns& b, Index begin, Index end, Index first, Index last,
                  GridSums& sums) {
  const Index height = last - first, m = b.total();
  const Index panels_a = (height + tile_rows - 1) / tile_rows,
              panels_b = (m + tile_columns - 1) / tile_columns;
  constexpr Index tile_size = tile_rows * tile_columns;
  Array<double> packed_a(most_parts * panels_a * tile_rows * chunk_rows);
  Array<double> packed_b(most_parts * panels_b * tile_columns * chunk_rows);
  Array<double> tiles(most_parts * panels_a * panels_b * tile_size, 0.0);  // sums of at most exact_rows rows
  const auto tile = [&](Index level, Index p, Index q) {
    return tiles.data() + ((level * panels_b + q) * panels_a + p) * tile_size;
  };
  alignas(64) double product[tile_size];
  Array<real> memory_a, memory_b;
  for (Index row = begin; row < end; row += chunk_rows) {
    const Index stop = std::min(end, row + chunk_rows), count = stop - row;
    const MatrixView rows_b = b.rows.view(row, stop, memory_b);
    const MatrixView rows_a = a.rows.view(row, stop, memory_a);
    pack<tile_rows>(a, rows_a, count, first, last, packed_a.data());
    pack<tile_columns>(b, rows_b, count, 0, m, packed_b.data());
    const Index size_a = panels_a * tile_rows * count, size_b = panels_b * tile_columns * count;
    for (Index q = 0; q < panels_b; ++q)
      for (Index p = 0; p < panels_a; ++p)
        for (Index s = 0; s < most_parts; ++s)
          for (Index t = 0; s + t < most_parts; ++t) {
            multiply_tile(count, packed_a.data() + s * size_a + p * tile_rows * count,
                          packed_b.data() + t * size_b + q * tile_columns * count, product);
            double* const to = tile(s + t, p, q);
            for (Index i = 0; i < tile_size; ++i) to[i] += product[i];
          }
    if (stop < end && (stop - begin) % exact_rows != 0) continue;
    for (Index level = 0; level < most_parts; ++level)
      for (Index q = 0; q < panels_b; ++q)
        for (Index i = 0; i < height; ++i)
          sums.add((level * height + i) * m + q * tile_columns,
                   tile(level, i / tile_rows, q) + i % tile_rows * tile_columns,
                   std::min(tile_columns, m - q * tile_columns));
    std::fill(tiles.begin(), tiles.end(), 0.0);
  }
}

}  // namespace

void largest_bits_of(const RowOperand& x, Index begin, Index end, double* largest) {
  Array<real> memory;
  Array<Bits> bits(x.row_size(), Bits{0});
  constexpr Index at_once = 64;
  for (Index row = begin; row < end; row += at_once)
    largest_bits(x.view(row, std::min(end, row + at_once), memory), bits.data());
  for (Index j = 0; j < x.row_size(); ++j) largest[j] = static_cast<double>(std::bit_cast<real>(bits[j]));
}

// Rows that add_products_exactly() multiplies at a time, and columns of a by a vector of columns of b.
constexpr Index block_rows = 64, exact_tile = 4;
constexpr Index lanes_of_real = SAR_VECTOR_BYTES / static_cast<Index>(sizeof(real));
constexpr Index halves = lanes_of_real / lanes_of_double;  // Doubles that widen one vector of reals
using Reals = lanes::Vector<lanes_of_real>;
typedef real Half __attribute__((vector_size(lanes_of_double * sizeof(real))));  // NOLINT

/// Some columns of an operand in a block of rows, side by side and followed by zeros, and how far their
/// exponents are apart: `spread` is that of the largest minus that of the smallest number that is not 0.
struct ColumnBlock {
  Index width;
  Array<real> numbers;  // [block_rows, width]
  Array<std::int32_t> largest, smallest, spread;

  explicit ColumnBlock(Index columns)
      : width(columns),
        numbers(block_rows * columns, real{0}),
        largest(columns),
        smallest(columns),
        spread(columns) {}
  void copy(const MatrixView& from) {
    constexpr std::int32_t none = 1 << 12;
    std::fill(largest.begin(), largest.end(), 0);
    std::fill(smallest.begin(), smallest.end(), none);
    for (Index i = 0; i < from.rows; ++i) {
      const real* row = from.data + i * from.row_step;
      std::copy_n(row, from.cols, numbers.data() + i * width);
      for (Index j = 0; j < from.cols; ++j) {
        const Bits bits = std::bit_cast<Bits>(std::abs(row[j]));
        const auto exponent = static_cast<std::int32_t>(bits >> (std::numeric_limits<real>::digits - 1));
        largest[j] = largest[j] < exponent ? exponent : largest[j];
        const std::int32_t of_number = bits == 0       ? none
                                       : exponent == 0 ? -std::numeric_limits<real>::digits  // subnormal
                                                       : exponent;
        smallest[j] = of_number < smallest[j] ? of_number : smallest[j];
      }
    }
    for (Index j = 0; j < width; ++j) spread[j] = std::max(largest[j] - smallest[j], 0);
  }
};

/// Adds the products of four columns of a, from column i on, and a vector of columns of b, from column j on,
/// to the exact sums high + low [4, lanes_of_real]. `exact`: sums of their block in double precision are
/// exact.
template <bool exact>
[[gnu::always_inline]] inline void add_tile(Index count, const ColumnBlock& a, Index i, const ColumnBlock& b,
                                            Index j, double* high, double* low, Index stride) {
  constexpr Index rows = exact_tile;
  Doubles sums[rows][halves], errors[rows][halves];
  for (Index r = 0; r < rows; ++r) {
    std::memcpy(sums[r], high + r * stride, sizeof sums[r]);
    std::memcpy(errors[r], low + r * stride, sizeof errors[r]);
  }
  Doubles of_block[rows][halves] = {};
  for (Index row = 0; row < count; ++row) {
    const Reals y = lanes::load<lanes_of_real>(b.numbers.data() + row * b.width + j);
    for (Index r = 0; r < rows; ++r) {
      const Reals product = a.numbers[row * a.width + i + r] * y;
      Half half[halves];
      std::memcpy(half, &product, sizeof product);
      for (Index h = 0; h < halves; ++h) {
        Doubles term = __builtin_convertvector(half[h], Doubles);
        if constexpr (exact)
          of_block[r][h] += term;
        else
          add_exactly(sums[r][h], errors[r][h], term);
      }
    }
  }
  for (Index r = 0; r < rows; ++r) {
    if constexpr (exact)
      for (Index h = 0; h < halves; ++h) add_exactly(sums[r][h], errors[r][h], of_block[r][h]);
    std::memcpy(high + r * stride, sums[r], sizeof sums[r]);
    std::memcpy(low + r * stride, errors[r], sizeof errors[r]);
  }
}

/// sums [k, m] += a^T b, exact sums of products that are rounded to `real`. 64 rows at a time are copied into
/// the cache, and four columns of a are multiplied by a vector of columns of b. A sum of 64 products in
/// double precision is exact if their exponents are close enough, which those of the columns tell: then a
/// product takes an addition in double precision, otherwise 7.
void add_products_exactly(const RowOperand& a, const RowOperand& b, ExactSum* sums) {
  constexpr Index rows = exact_tile;
  // The sum is below 2^(largest exponents + 8), and a multiple of the last bit of the smallest product.
  constexpr std::int32_t close = 53 - 8 - (std::numeric_limits<real>::digits - 1);
  const Index n = b.num_rows(), k = a.row_size(), m = b.row_size();
  ColumnBlock left((k + rows - 1) / rows * rows),
      right((m + lanes_of_real - 1) / lanes_of_real * lanes_of_real);
  const Index stride = right.width;
  Array<double> high(left.width * stride, 0.0), low(left.width * stride, 0.0);
  Array<real> memory_a, memory_b;
  for (Index row = 0; row < n; row += block_rows) {
    const Index stop = std::min(n, row + block_rows);
    left.copy(a.view(row, stop, memory_a));
    right.copy(b.view(row, stop, memory_b));
    parallel_for_each(left.width / rows, 8, [&](Index tile) {
      const Index i = tile * rows;
      const std::int32_t of_a = *std::max_element(left.spread.data() + i, left.spread.data() + i + rows);
      for (Index j = 0; j < stride; j += lanes_of_real) {
        const std::int32_t of_b =
            *std::max_element(right.spread.data() + j, right.spread.data() + j + lanes_of_real);
        double *const to = high.data() + i * stride + j, *const errors = low.data() + i * stride + j;
        if (of_a + of_b <= close)
          add_tile<true>(stop - row, left, i, right, j, to, errors, stride);
        else
          add_tile<false>(stop - row, left, i, right, j, to, errors, stride);
      }
    });
  }
  for (Index i = 0; i < k; ++i)
    for (Index j = 0; j < m; ++j) sums[i * m + j].add(ExactSum{high[i * stride + j], low[i * stride + j]});
}

/// Adds the columns of x to `sums`. Per number 7 additions in double precision.
void add_column_sums_of_rank(const RowOperand& x, ExactSum* sums) {
  const Index n = x.num_rows(), m = x.row_size();
  const Index parts = std::clamp<Index>(n / exact_rows, 1, 2 * Index{num_threads()});
  std::mutex mutex;
  parallel_for(parts, 1, [&](Index part, Index) {
    constexpr Index at_once = 64;  // rows that are computed into the cache
    Array<double> high(m, 0.0), low(m, 0.0);
    Array<real> memory;
    const Index end = n * (part + 1) / parts;
    for (Index row = n * part / parts; row < end; row += at_once) {
      const Index stop = std::min(end, row + at_once);
      const MatrixView rows = x.view(row, stop, memory);
      for (Index i = 0; i < stop - row; ++i) {
        const real* from = rows.data + i * rows.row_step;
        SAR_INDEPENDENT_ITERATIONS
        for (Index j = 0; j < m; ++j) add_number_exactly(high[j], low[j], static_cast<double>(from[j]));
      }
    }
    const std::lock_guard lock(mutex);
    for (Index j = 0; j < m; ++j) sums[j].add(ExactSum{high[j], low[j]});
  });
}

/// sums [2, levels, a columns, b columns] of this rank.
void exact_products_of_rank(const RowOperand& a, const RowOperand& b, bool ones, const double* largest,
                            double* unscale, double* sums) {
  const auto columns_of = [](const RowOperand& rows, bool with_ones, const double* of, double* unscaled) {
    Columns columns{rows, rows.row_size(), with_ones, {}, {}};
    for (Index j = 0; j < columns.total(); ++j) {
      constexpr int least = -1000;
      int exponent = digits;  // of ones, and of columns that give NaN
      if (j < columns.count && std::isfinite(of[j]))
        exponent = of[j] > 0 ? std::max(std::ilogb(of[j]) + 1, least) : 0;
      columns.scale.push_back(std::ldexp(1.0, digits - exponent));
      unscaled[j] = std::ldexp(1.0, exponent - digits);
    }
    return columns;
  };
  const Columns left = columns_of(a, ones, largest, unscale);
  const Columns right = columns_of(b, false, largest + left.count, unscale + left.total());
  const Index n = b.num_rows(), k = left.total(), m = right.total(), numbers = most_parts * k * m;
  const Index wanted = 2 * Index{num_threads()};
  const Index parts = std::clamp<Index>(n / (2 * exact_rows), 1, wanted);
  const Index tiles = std::clamp<Index>(wanted / parts, 1, (k + tile_rows - 1) / tile_rows);
  std::mutex mutex;
  std::fill_n(sums, 2 * numbers, 0.0);
  parallel_for(parts * tiles, 1, [&](Index task, Index) {
    const Index part = task / tiles, tile = task % tiles;
    const Index first = k * tile / tiles, last = k * (tile + 1) / tiles, height = last - first;
    GridSums of_task(most_parts * height * m);
    add_products(left, right, n * part / parts, n * (part + 1) / parts, first, last, of_task);
    const std::lock_guard lock(mutex);
    for (Index level = 0; level < most_parts; ++level)
      for (Index i = 0; i < height * m; ++i) {
        const Index to = (level * k + first) * m + i, from = level * height * m + i;
        sums[to] += of_task.high[from];
        sums[numbers + to] += of_task.low[from];
      }
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, largest_bits_of, (const RowOperand& x, Index begin, Index end, double* largest),
             (x, begin, end, largest));
SAR_DISPATCH(void, add_column_sums_of_rank, (const RowOperand& x, ExactSum* sums), (x, sums));
SAR_DISPATCH(void, add_products_exactly, (const RowOperand& a, const RowOperand& b, ExactSum* sums),
             (a, b, sums));
SAR_DISPATCH(void, exact_products_of_rank,
             (const RowOperand& a, const RowOperand& b, bool ones, const double* largest, double* unscale,
              double* sums),
             (a, b, ones, largest, unscale, sums));

#if SAR_COMPILED_ONCE
namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The largest magnitude of each column; NaN and infinite numbers are larger than all others.
void add_largest(const RowOperand& x, double* largest) {
  constexpr Index grain = 1 << 16;
  const Index width = x.row_size();
  std::mutex mutex;
  parallel_for(x.num_rows(), std::max<Index>(grain / std::max<Index>(width, 1), 64),
               [&](Index begin, Index end) {
                 std::vector<double> mine(static_cast<std::size_t>(width));
                 largest_bits_of(x, begin, end, mine.data());
                 const std::lock_guard lock(mutex);
                 for (Index j = 0; j < width; ++j)
                   largest[j] = std::max(largest[j], std::isfinite(mine[j]) ? mine[j] : HUGE_VAL);
               });
}

/// Throws unless `a`, if there is one, and b have as many rows, of reals.
void check(const RowOperand* a, const RowOperand& b) {
  require<ShapeError>(a == nullptr || a->num_rows() == b.num_rows(), "products of ",
                      a != nullptr ? a->num_rows() : 0, " and of ", b.num_rows(), " rows");
  require<InputError>(!b.is_bfloat16() && (a == nullptr || !a->is_bfloat16()),
                      "reproducible sums in mixed precision, expected one of them");
}

}  // namespace

std::vector<double> exact_products(const RankSums& ranks, const RowOperand& a, const RowOperand& b,
                                   bool column_sums) {
  const TraceScope scope("exact_products", TraceKind::compute);
  check(&a, b);
  constexpr Index levels = sizeof(real) == 4 ? 1 : 3;
  const Index of_a = a.row_size(), k = of_a + (column_sums ? 1 : 0), m = b.row_size();
  std::vector<double> largest(static_cast<std::size_t>(of_a + m), 0.0),
      unscale(static_cast<std::size_t>(k + m));
  add_largest(a, largest.data());
  add_largest(b, largest.data() + of_a);
  ranks.maximum(largest);
  const Index numbers = levels * k * m;
  std::vector<double> sums(static_cast<std::size_t>(2 * numbers));
  exact_products_of_rank(a, b, column_sums, largest.data(), unscale.data(), sums.data());
  ranks.sum(sums);
  std::vector<double> result(static_cast<std::size_t>(k * m));
  for (Index i = 0; i < k; ++i)
    for (Index j = 0; j < m; ++j) {
      ExactSum total;
      double unit = 1;
      for (Index at = i * m + j; at < numbers; at += k * m, unit /= static_cast<double>(1 << 21)) {
        total.add(sums[at] * unit);
        total.add(sums[numbers + at] * unit);
      }
      result[i * m + j] = total.value() * unscale[i] * unscale[k + j] + 0.0;
    }
  return result;
}

std::vector<double> exact_column_sums(const RankSums& ranks, const RowOperand& x) {
  const TraceScope scope("exact_column_sums", TraceKind::compute);
  check(nullptr, x);
  std::vector<ExactSum> sums(static_cast<std::size_t>(x.row_size()));
  add_column_sums_of_rank(x, sums.data());
  ranks.sum(std::span(sums));
  std::vector<double> values;
  for (const ExactSum& sum : sums) values.push_back(sum.value());
  return values;
}

std::vector<ExactSum> exact_products_of_chunk(const RowOperand* a, const RowOperand& b, bool column_sums) {
  check(a, b);
  const Index k = a != nullptr ? a->row_size() : 0, m = b.row_size();
  std::vector<ExactSum> sums(static_cast<std::size_t>((k + (column_sums ? 1 : 0)) * m));
  if (a != nullptr) add_products_exactly(*a, b, sums.data());
  if (column_sums) add_column_sums_of_rank(b, sums.data() + k * m);
  return sums;
}
}}  // namespace sar
#endif
