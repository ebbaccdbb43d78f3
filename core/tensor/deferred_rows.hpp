/// DeferredRows: a result whose rows are computed when they are read.
#pragma once

#include <sar/core/tensor/tensor.hpp>

#include <mutex>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// The rows of a result that is cheap to compute from what its operation keeps for the backward pass anyway,
/// for example a normalization. A product computes the rows that it multiplies next into a buffer in the
/// cache, and again in the backward pass (core/products/row_operand.hpp), so the whole result is never in
/// memory. Any other operation calls all().
class DeferredRows : NonCopyable {
 public:
  explicit DeferredRows(const Shape& shape) : shape_(shape) {}
  virtual ~DeferredRows() = default;

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// Writes rows [first, first + count) to `out`. Thread-safe: several threads may compute at once.
  virtual void compute(Index first, Index count, real* out) const = 0;
  /// Returns the memory that compute(first, count, out) reads if prefetching it is worthwhile.
  [[nodiscard]] virtual std::span<const real> reads(Index first, Index count) const = 0;
  /// Returns all rows; the first call computes them, later calls return the same tensor. Thread-safe.
  [[nodiscard]] const Tensor& all() const;
  /// Returns the tensor of all(), or an undefined tensor if all() was never called.
  [[nodiscard]] Tensor computed() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  Shape shape_;
  mutable std::mutex mutex_;
  mutable Tensor all_;
};

}}  // namespace sar
