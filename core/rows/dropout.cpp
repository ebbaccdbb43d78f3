// SPDX-License-Identifier: MIT

// Dropout. Words are drawn for a tile of rows into 16 KiB of L1 cache (simd/drawn_rows.hpp) and compared
// with a threshold, vectorized over columns; the ten rounds of Philox dominate the time of drawing. Decisions
// are stored as bits: word j of a group of 32 rows contains one bit per row for column j, so that the columns
// of a row have contiguous words.
//
// Bytes moved per element (float): drawing bits writes 1/8; applying bits reads 4 + 1/8 and writes 4 (each
// word is read again for 32 rows, from cache). apply_to_relu() draws while it applies and stores no bits; its
// gradient reads 8 and writes 4. Both read and write bfloat16 numbers in place: half of these bytes. Of
// sparse rows, only the words of stored values are drawn.
#include <sar/core/error.hpp>
#include <sar/core/rows/dropout.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/core/simd/drawn_rows.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <sar/core/isa/isa_begin.hpp>

using lanes::number;
using lanes::set_number;

/// A separate function, so that its arguments stay in registers: the compiler must assume that the loop
/// modifies the captured values of a closure.
void factors_of(const std::uint32_t* words, std::uint32_t threshold, real scale, Index n, real* factors) {
  for (Index j = 0; j < n; ++j) factors[j] = words[j] < threshold ? real{0} : scale;
}

/// factors = 0 or keep_scale for rows stored contiguously.
void draw_factors(const DropoutDraw& draw, std::span<const Index> row_ids, Index row_size, real* factors) {
  drawn_rows::for_drawn_rows(
      row_ids, row_size, draw.key, [&](Index row, Index first, Index columns, const std::uint32_t* words) {
        factors_of(words, draw.threshold, draw.keep_scale, columns, factors + row * row_size + first);
      });
}

/// Draws the bits of at most 32 rows.
void draw_bits(const DropoutDraw& draw, std::span<const Index> row_ids, Index row_size, std::uint32_t* bits) {
  const std::uint32_t threshold = draw.threshold;
  std::fill_n(bits, row_size, 0u);
  drawn_rows::for_drawn_rows(row_ids, row_size, draw.key,
                 [&](Index row, Index first, Index columns, const std::uint32_t* words) {
                   const std::uint32_t bit = 1u << row;
                   std::uint32_t* to = bits + first;
                   for (Index j = 0; j < columns; ++j) to[j] |= words[j] < threshold ? 0u : bit;
                 });
}

/// out = value * factor for the stored values of rows [first, last): the draws of 4 * lanes values at a time.
/// Value i of them is drawn in lane i % lanes of vector i / lanes; its words come where that lane's block
/// does.
void drop_stored_values(const DropoutDraw& draw, const SparseMatrix& x, std::span<const Index> row_ids,
                        Index first, Index last, real* out) {
  constexpr Index lanes = drawn_rows::lanes, at_once = 4 * lanes;
  Index place[at_once];  // of the block of value i
  for (Index i = 0; i < at_once; ++i)
    place[i / lanes * lanes + static_cast<Index>(drawn_rows::lane_of(i % lanes))] = i;
  const real factors[] = {draw.keep_scale, 0};  // a table, because a branch would be taken at random
  const Index* const offsets = x.row_offsets().data();
  const std::int32_t* const columns = x.columns().data();
  const real* const values = x.values().data();
  std::uint64_t ids[at_once] = {}, blocks[at_once] = {};
  std::uint32_t words[4 * at_once];
  Index row = first;
  for (Index k = offsets[first]; k < offsets[last]; k += at_once) {
    const Index count = std::min(at_once, offsets[last] - k);
    for (Index i = 0; i < count;) {
      while (offsets[row + 1] <= k + i) ++row;
      const auto id = static_cast<std::uint64_t>(row_ids[row]);
      for (const Index end = std::min(count, offsets[row + 1] - k); i < end; ++i) ids[i] = id;
    }
    for (Index i = 0; i < count; ++i) blocks[i] = static_cast<std::uint32_t>(columns[k + i]) / 4;
    drawn_rows::Words of_ids[4], of_blocks[4];
    std::memcpy(of_ids, ids, sizeof ids);
    std::memcpy(of_blocks, blocks, sizeof blocks);
    drawn_rows::philox_blocks(of_ids, of_blocks, draw.key, words);
    for (Index i = 0; i < count; ++i) {
      const bool dropped = words[4 * place[i] + columns[k + i] % 4] < draw.threshold;
      out[k + i] = values[k + i] * factors[dropped ? 1 : 0];
    }
  }
}

/// to (+)= from * factors for one row.
void apply_bits(const std::uint32_t* words, Index row, real keep_scale, Index row_size, const real* from,
                real* to, bool accumulate) {
  const std::uint32_t bit = 1u << row % DropoutBits::rows_of_word;
  if (accumulate) {
    for (Index j = 0; j < row_size; ++j) to[j] += from[j] * ((words[j] & bit) != 0 ? keep_scale : real{0});
  } else {
    for (Index j = 0; j < row_size; ++j) to[j] = from[j] * ((words[j] & bit) != 0 ? keep_scale : real{0});
  }
}

/// y = relu(x) * factors; y may be x.
template <class Number>
void apply_words_to_relu(const std::uint32_t* words, std::uint32_t threshold, real scale, Index n,
                         const Number* x, Number* y) {
  SAR_INDEPENDENT_ITERATIONS
  for (Index j = 0; j < n; ++j) {
    const real value = number(x[j]);
    const real positive = value < 0 ? real{0} : value;
    const real factor = words[j] < threshold ? real{0} : scale;
    set_number(y[j], positive * factor);
  }
}

/// The same for rows stored contiguously.
template <class Number>
void apply_words_to_rows(const DropoutDraw& draw, std::span<const Index> row_ids, Index row_size,
                         const Number* from, Number* to) {
  drawn_rows::for_drawn_rows(row_ids, row_size, draw.key,
                 [&](Index row, Index first, Index columns, const std::uint32_t* words) {
                   const Index at = row * row_size + first;
                   apply_words_to_relu(words, draw.threshold, draw.keep_scale, columns, from + at, to + at);
                 });
}

/// `from` is of the type of `to`.
void apply_draws_to_relu(const DropoutDraw& draw, std::span<const Index> row_ids, Index row_size,
                         ConstTypedNumbers from, TypedNumbers to) {
  with_type(to, [&]<class Number>(Number* y) {
    apply_words_to_rows(draw, row_ids, row_size, static_cast<const Number*>(from.memory()), y);
  });
}

/// to (+)= scale * grad where y > 0. Vectors are chosen from explicitly: the compiler makes a branch of the
/// choice, which is taken at random.
template <class Number>
void pass_positive_numbers(const Number* y, real scale, Index n, const Number* grad, Number* to,
                           bool accumulate) {
  lanes::for_lanes(0, n, [&](auto count, Index i) {
    using Vector = lanes::Vector<count>;
    const Vector passed = lanes::load<count>(y + i) > 0 ? scale * lanes::load<count>(grad + i) : Vector{};
    lanes::store<count>(to + i, accumulate ? lanes::load<count>(to + i) + passed : passed);
  });
}

/// All three are of one type.
void pass_positive(ConstTypedNumbers y, real scale, Index n, ConstTypedNumbers grad, TypedNumbers to,
                   bool accumulate) {
  with_type(to, [&]<class Number>(Number* out) {
    pass_positive_numbers(static_cast<const Number*>(y.memory()), scale, n,
                          static_cast<const Number*>(grad.memory()), out, accumulate);
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, draw_factors,
             (const DropoutDraw& draw, std::span<const Index> row_ids, Index row_size, real* factors),
             (draw, row_ids, row_size, factors));
SAR_DISPATCH(void, draw_bits,
             (const DropoutDraw& draw, std::span<const Index> row_ids, Index row_size, std::uint32_t* bits),
             (draw, row_ids, row_size, bits));
SAR_DISPATCH(void, drop_stored_values,
             (const DropoutDraw& draw, const SparseMatrix& x, std::span<const Index> row_ids, Index first,
              Index last, real* out),
             (draw, x, row_ids, first, last, out));
SAR_DISPATCH(void, apply_bits,
             (const std::uint32_t* words, Index row, real keep_scale, Index row_size, const real* from,
              real* to, bool accumulate),
             (words, row, keep_scale, row_size, from, to, accumulate));
SAR_DISPATCH(void, apply_draws_to_relu,
             (const DropoutDraw& draw, std::span<const Index> row_ids, Index row_size, ConstTypedNumbers from,
              TypedNumbers to),
             (draw, row_ids, row_size, from, to));
SAR_DISPATCH(void, pass_positive,
             (ConstTypedNumbers y, real scale, Index n, ConstTypedNumbers grad, TypedNumbers to,
              bool accumulate),
             (y, scale, n, grad, to, accumulate));

#if SAR_COMPILED_ONCE
namespace sar { inline namespace SAR_PRECISION {

constexpr Index grain = 1 << 15;  // elements per parallel block

DropoutMask::DropoutMask(const RandomKey& key, double p)
    : draw_{.key = Random(key).key(), .threshold = 0, .keep_scale = 1} {
  require(p >= 0 && p < 1, "the probability of dropout must be at least 0 and below 1, not ", p);
  draw_.threshold = static_cast<std::uint32_t>(std::min(std::round(p * 0x1p32), 0x1p32 - 1));
  draw_.keep_scale = static_cast<real>(1 / (1 - p));
}

void DropoutMask::factors(std::span<const Index> row_ids, Index row_size, real* factors) const {
  draw_factors(draw_, row_ids, row_size, factors);
}

std::shared_ptr<const SparseMatrix> DropoutMask::apply(const SparseMatrix& x,
                                                       std::span<const Index> row_ids) const {
  require<ShapeError>(std::ssize(row_ids) == x.num_rows(), "dropout of sparse rows of shape ", x.shape(),
                      " with ", row_ids.size(), " row ids");
  Array<real> values(x.num_stored());
  const auto work_before = [&](Index i) { return x.row_offsets()[i] + i; };
  for_blocks_of_work(
      x.num_rows(), x.num_stored() + x.num_rows(), 1 << 13, work_before,
      [&](Index first, Index last) { drop_stored_values(draw_, x, row_ids, first, last, values.data()); });
  return x.with_values(std::move(values));
}

void DropoutMask::apply_to_relu(const TypedRows& x, std::span<const Index> row_ids, TypedRows& out) const {
  const Index width = x.row_size();
  require<ShapeError>(std::ssize(row_ids) == x.num_rows() && x.shape() == out.shape(),
                      "dropout of a tensor of shape ", x.shape(), " with ", row_ids.size(),
                      " row ids into one of shape ", out.shape());
  require(x.type() == out.type(), "dropout of rows of one type into rows of another type");
  if (width == 0) return;
  parallel_for(x.num_rows(), std::max<Index>(1, grain / width), [&](Index begin, Index end) {
    const auto ids = row_ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    apply_draws_to_relu(draw_, ids, width, x.numbers(begin), out.numbers(begin));
  });
}

void relu_dropout_backward(const TypedRows& y, real keep_scale, const TypedRows& grad, TypedRows& out,
                           bool accumulate) {
  require<ShapeError>(y.shape() == grad.shape() && y.shape() == out.shape(), "gradient of shape ",
                      grad.shape(), " for a value of shape ", y.shape(), " into ", out.shape());
  const auto pass = [&](Index size, ConstTypedNumbers of_y, ConstTypedNumbers g, TypedNumbers to) {
    parallel_for(size, grain, [&](Index begin, Index end) {
      pass_positive(of_y.from(begin), keep_scale, end - begin, g.from(begin), to.from(begin), accumulate);
    });
  };
  if (y.is_bfloat16() && grad.is_bfloat16() && out.is_bfloat16())
    return pass(y.size(), y.numbers(), grad.numbers(), out.numbers());
  on_real_rows(
      out, accumulate,
      [&](Index, Tensor& to, const Tensor& of_y, const Tensor& g) {
        pass(to.size(), of_y.data(), g.data(), to.data());
      },
      y, grad);
}

DropoutBits::DropoutBits(const DropoutMask& mask, std::span<const Index> row_ids, Index row_size)
    : num_rows_(std::ssize(row_ids)), row_size_(row_size), keep_scale_(mask.keep_scale()) {
  const Index groups = (num_rows_ + rows_of_word - 1) / rows_of_word;
  const auto words = std::make_shared<Array<std::uint32_t>>();
  words->resize(static_cast<std::size_t>(groups * row_size));
  words_ = words;
  if (row_size == 0) return;
  parallel_for_each(groups, std::max<Index>(1, (1 << 10) / row_size), [&](Index g) {
    const Index first = g * rows_of_word, count = std::min(rows_of_word, num_rows_ - first);
    draw_bits(mask.draw(), row_ids.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
              row_size, words->data() + g * row_size);
  });
}

void DropoutBits::apply(const Tensor& x, Tensor& out, bool accumulate) const {
  require<ShapeError>(x.num_rows() == num_rows_, "dropout of a tensor of shape ", x.shape(),
                      " with draws for ", num_rows_, " rows of ", row_size_, " into one of shape ",
                      out.shape());
  apply_to_part(0, x, out, accumulate);
}

void DropoutBits::apply_to_part(Index first, const Tensor& x, Tensor& out, bool accumulate) const {
  require<ShapeError>(x.shape() == out.shape() && x.row_size() == row_size_ && 0 <= first &&
                          first + x.num_rows() <= num_rows_,
                      "dropout of a tensor of shape ", x.shape(), " with draws for ", num_rows_, " rows of ",
                      row_size_, " into one of shape ", out.shape());
  parallel_for_each(x.num_rows(), std::max<Index>(1, grain / std::max<Index>(row_size_, 1)), [&](Index i) {
    apply_bits(words(first + i), first + i, keep_scale_, row_size_, x.row(i), out.row(i), accumulate);
  });
}

void DropoutBits::apply_rows(Index first, Index count, const real* x, real* out) const {
  for (Index i = 0; i < count; ++i)
    apply_bits(words(first + i), first + i, keep_scale_, row_size_, x + i * row_size_, out + i * row_size_,
               false);
}

}}  // namespace sar
#endif
