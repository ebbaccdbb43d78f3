// SPDX-License-Identifier: MIT

/// Rows of a table by their numbers, without a copy of them.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/tensor/deferred_rows.hpp>

#include <memory>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns y[i] = x[ids[i]] as a deferred value. A product gathers the rows that it multiplies next
/// into the cache; on one rank, sums and means of copy_u and of u times a number per edge read the rows in
/// x. Any other operation makes the copy that gather_rows() makes, once. Used for the features of
/// mini-batches. A table of type bfloat16 gives rows of this type. x and the ids must not change until the
/// backward pass is done. Throws ShapeError, with the row number, if an id is out of range.
Variable deferred_gather_rows(TypedRows x, RowIds ids);

/// The table that deferred rows are read from, and the numbers of these rows.
struct GatheredTable {
  TypedRows table;
  RowIds ids;

  /// Copies the rows, after which the caller may write to the memory of the table. No operation may be
  /// reading them.
  void detach();
};

/// The result type of deferred_gather_rows(): rows of a table that are gathered when they are read. For
/// authors of operations.
class GatheredRows : public DeferredRows {
 public:
  GatheredRows(TypedRows table, RowIds ids);

  [[nodiscard]] const TypedRows& table() const noexcept { return source_->table; }
  [[nodiscard]] std::span<const Index> rows() const noexcept {
    return source_->ids.span().subspan(begin_, static_cast<std::size_t>(shape()[0]));
  }
  /// Returns what these rows and all slices of them read.
  [[nodiscard]] const std::shared_ptr<GatheredTable>& source() const noexcept { return source_; }
  /// Returns rows [begin, end) of these. Throws ShapeError if out of range.
  [[nodiscard]] std::shared_ptr<const GatheredRows> slice(Index begin, Index end) const;

  void compute(Index first, Index count, real* out) const override;
  /// Returns nothing: the rows are scattered over the table, and compute() prefetches them.
  [[nodiscard]] std::span<const std::byte> reads(Index, Index) const override { return {}; }

 private:
  GatheredRows(const GatheredRows& all, Index begin, Index end);

  std::shared_ptr<GatheredTable> source_;
  std::size_t begin_ = 0;  // of the rows among source_->ids
};

/// Returns the deferred rows of `x`; null if it is not a result of deferred_gather_rows(). For authors of
/// operations.
std::shared_ptr<const GatheredRows> gathered_rows(const Variable& x);

}}  // namespace sar
