/// What deferred_gather_rows() returns. For authors of operations.
#pragma once

#include <sar/autograd/deferred_gather.hpp>
#include <sar/core/deferred_rows.hpp>

#include <memory>
#include <span>

namespace sar::inline SAR_PRECISION {

/// The value of deferred_gather_rows().
class GatheredRows : public DeferredRows {
 public:
  GatheredRows(Tensor table, RowIds ids);

  [[nodiscard]] const Tensor& table() const noexcept { return table_; }
  [[nodiscard]] std::span<const Index> rows() const noexcept { return rows_; }
  /// Rows [begin, end) of these. Throws ShapeError when there are fewer.
  [[nodiscard]] std::shared_ptr<const GatheredRows> slice(Index begin, Index end) const;

  void compute(Index first, Index count, real* out) const override;
  /// Nothing: they lie anywhere in the table, and compute() requests them.
  [[nodiscard]] std::span<const real> reads(Index, Index) const override { return {}; }

 private:
  GatheredRows(const GatheredRows& all, Index begin, Index end);

  Tensor table_;
  RowIds ids_;
  std::span<const Index> rows_;  // of ids_
};

/// What `x` gathers when it is read; null when it is no result of deferred_gather_rows().
std::shared_ptr<const GatheredRows> gathered_rows(const Variable& x);

}  // namespace sar
