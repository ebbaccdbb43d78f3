/// Rows of type reals or bfloat16, as a kernel of `real` rows reads and writes them: in place, or through
/// buffers in the cache. For implementation files, and for operations that pass their operands on.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/typed_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

/// Of one thread: row(i) is valid until the next call.
class RowReader {
 public:
  explicit RowReader(const TypedRows& rows)
      : rows_(rows), width_(rows.row_size()), buffer_(rows.is_bfloat16() ? width_ : 0) {}
  [[nodiscard]] const real* row(Index i) {
    if (!rows_.is_bfloat16()) return rows_.reals().row(i);
    widen(rows_.bfloat16() + i * width_, width_, buffer_.data());
    return buffer_.data();
  }

 private:
  const TypedRows& rows_;
  Index width_;
  Array<real> buffer_;
};

/// Of one thread: what is written to row(i) is stored by done(i).
class RowWriter {
 public:
  explicit RowWriter(TypedRows& rows)
      : rows_(rows), width_(rows.row_size()), buffer_(rows.is_bfloat16() ? width_ : 0) {}
  /// `keep`: the row begins with the present values.
  [[nodiscard]] real* row(Index i, bool keep = false) {
    if (!rows_.is_bfloat16()) return rows_.reals().row(i);
    if (keep) widen(rows_.bfloat16() + i * width_, width_, buffer_.data());
    return buffer_.data();
  }
  void done(Index i) {
    if (rows_.is_bfloat16()) narrow(buffer_.data(), width_, rows_.bfloat16() + i * width_);
  }

 private:
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

}}  // namespace sar
