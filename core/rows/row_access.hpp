// SPDX-License-Identifier: MIT

/// Rows of type reals or bfloat16, as a kernel of `real` rows reads and writes them: in place, or through
/// buffers in the cache. For implementation files, and for operations that pass their operands on.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/typed_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <type_traits>

namespace sar { inline namespace SAR_PRECISION {

/// Of one thread: row(i), of numbers of type Number, is valid until the next call. A reader of bfloat16
/// numbers reads rows of this type only.
template <class Number = real>
class RowReader {
 public:
  explicit RowReader(const TypedRows& rows)
      : rows_(rows), width_(rows.row_size()), buffer_(widens() ? width_ : 0) {}
  [[nodiscard]] const Number* row(Index i) {
    if constexpr (std::is_same_v<Number, Bfloat16>) {
      return rows_.bfloat16() + i * width_;
    } else {
      if (!widens()) return rows_.reals().row(i);
      widen(rows_.bfloat16() + i * width_, width_, buffer_.data());
      return buffer_.data();
    }
  }

 private:
  [[nodiscard]] bool widens() const { return std::is_same_v<Number, real> && rows_.is_bfloat16(); }

  const TypedRows& rows_;
  Index width_;
  Array<real> buffer_;
};

/// Of one thread: what is written to row(i) is stored by done(i).
template <class Number = real>
class RowWriter {
 public:
  explicit RowWriter(TypedRows& rows)
      : rows_(rows), width_(rows.row_size()), buffer_(rounds() ? width_ : 0) {}
  [[nodiscard]] Number* row(Index i) {
    if constexpr (std::is_same_v<Number, Bfloat16>)
      return rows_.bfloat16() + i * width_;
    else
      return rounds() ? buffer_.data() : rows_.reals().row(i);
  }
  void done(Index i) {
    if (rounds()) narrow(buffer_.data(), width_, rows_.bfloat16() + i * width_);
  }

 private:
  [[nodiscard]] bool rounds() const { return std::is_same_v<Number, real> && rows_.is_bfloat16(); }

  TypedRows& rows_;
  Index width_;
  Array<real> buffer_;
};

/// Rows [begin, end) of x as `real`: a view of reals, a copy of other types.
[[nodiscard]] inline Tensor real_rows(const TypedRows& x, Index begin, Index end) {
  if (!x.defined()) return {};
  return x.is_real() ? x.reals().slice_rows(begin, end) : x.slice_rows(begin, end).to_tensor();
}

/// Calls compute(first row, out, rows of each of x...) for tensors of the same rows. If all rows are reals,
/// once for all of them; otherwise in parallel for blocks of rows in the cache, which are widened before and
/// rounded afterwards. With `keep`, the rows of out begin with the present values. out may be one of x.
template <class Compute, class... X>
void on_real_rows(TypedRows& out, bool keep, const Compute& compute, const X&... x) {
  constexpr Index grain = Index{1} << 14;  // numbers
  if (out.is_real() && (... && x.is_real())) return compute(Index{0}, out.reals(), x.reals()...);
  parallel_for(out.num_rows(), std::max<Index>(grain / std::max<Index>(out.row_size(), 1), 1),
               [&](Index begin, Index end) {
                 Tensor rows = keep || out.is_real() ? real_rows(out, begin, end)
                                                     : Tensor(out.shape().with_rows(end - begin));
                 compute(begin, rows, real_rows(x, begin, end)...);
                 if (out.is_bfloat16())
                   narrow(rows.data(), rows.size(), out.bfloat16() + begin * out.row_size());
               });
}

// Parallel loops over rows of unequal work, in blocks of about equal work. For implementation files.

/// Calls body(first, last) for blocks of rows with about `grain` of work each, in parallel. work_before(i) is
/// the work of the rows before row i: work_before(0) = 0, and it increases by at least 1 per row. `total` is
/// the work of all rows. No block is empty, and the blocks do not depend on the number of threads.
template <class WorkBefore, class Body>
void for_blocks_of_work(Index rows, Index total, Index grain, const WorkBefore& work_before,
                        const Body& body) {
  const Index blocks = (total + grain - 1) / grain;
  const auto first_row = [&](Index block) {  // the first row with work_before(row) >= block * grain
    Index low = 0, high = rows;
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (work_before(middle) < block * grain)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  parallel_for(blocks, 1, [&](Index block, Index) {
    const Index first = first_row(block), last = block + 1 == blocks ? rows : first_row(block + 1);
    if (first < last) body(first, last);
  });
}
}}  // namespace sar
