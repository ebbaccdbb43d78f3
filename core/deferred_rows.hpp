/// Values that are computed when they are read.
#pragma once

#include <sar/core/tensor.hpp>

#include <mutex>
#include <span>

namespace sar::inline SAR_PRECISION {

/// The rows of a result that is cheap to compute from what its operation keeps for the backward pass anyway,
/// such as those of a normalization. A product computes the rows that it multiplies next, in the cache, and
/// again in the backward pass (core/row_operand.hpp): the result is never in memory as a whole. Any other
/// operation reads all of them.
class DeferredRows {
 public:
  explicit DeferredRows(const Shape& shape) : shape_(shape) {}
  virtual ~DeferredRows() = default;
  DeferredRows(const DeferredRows&) = delete;
  DeferredRows& operator=(const DeferredRows&) = delete;

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// Writes rows [first, first + count) to `out`, on the calling thread, which may be any; several threads
  /// compute at the same time.
  virtual void compute(Index first, Index count, real* out) const = 0;
  /// The memory that compute(first, count, out) reads, where it is worth a request ahead.
  [[nodiscard]] virtual std::span<const real> reads(Index first, Index count) const = 0;
  /// All rows, computed at the first call and kept from then on. On any thread.
  [[nodiscard]] const Tensor& all() const;
  /// What all() keeps; undefined before its first call.
  [[nodiscard]] Tensor computed() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  Shape shape_;
  mutable std::mutex mutex_;
  mutable Tensor all_;
};

}  // namespace sar
