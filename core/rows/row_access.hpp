/// Rows of type reals or bfloat16, as a kernel of `real` rows reads and writes them: in place, or through a
/// buffer of one row in the L1 cache. For implementation files.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/typed_rows.hpp>

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

}}  // namespace sar
