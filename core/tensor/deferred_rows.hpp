// SPDX-License-Identifier: MIT

/// DeferredRows: a result whose rows are computed when they are read.
#pragma once

#include <sar/core/tensor/tensor.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include <cstddef>
#include <mutex>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// The rows of a result that is cheap to compute from what its operation keeps for the backward pass anyway,
/// for example a normalization. A product computes the rows that it multiplies next into a buffer in the
/// cache, and again in the backward pass (core/products/row_operand.hpp), so the whole result is never in
/// memory. Any other operation calls all() or, if it reads rows of several types, stored().
class DeferredRows : NonCopyable {
 public:
  /// `type`: of stored(). Rows of type bfloat16 are rounded where they are stored.
  explicit DeferredRows(const Shape& shape, NumberType type = NumberType::reals)
      : shape_(shape), type_(type) {}
  virtual ~DeferredRows() = default;

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] NumberType type() const noexcept { return type_; }
  /// Writes rows [first, first + count) to `out`. Thread-safe: several threads may compute at once.
  virtual void compute(Index first, Index count, real* out) const = 0;
  /// The same rounded to bfloat16.
  virtual void compute_rounded(Index first, Index count, Bfloat16* out) const;
  /// Returns the memory that compute(first, count, out) reads if prefetching it is worthwhile.
  [[nodiscard]] virtual std::span<const std::byte> reads(Index /*first*/, Index /*count*/) const {
    return {};
  }
  /// Returns all rows in their type; the first call computes them, later calls return the same rows.
  /// Thread-safe.
  [[nodiscard]] const TypedRows& stored() const;
  /// The same as `real`: those of another type are widened, once.
  [[nodiscard]] const Tensor& all() const;
  /// For an operation that has read stored() and will again in its backward pass: gives the rows up if they
  /// are of a kind that is computed again. References to stored() and all() end.
  virtual void release() const {}
  /// Returns the rows of stored(), or undefined ones if there are none at this time.
  [[nodiscard]] TypedRows computed() const {
    const std::lock_guard lock(mutex_);
    return stored_;
  }

 protected:
  /// Rows that are in memory from the beginning.
  explicit DeferredRows(TypedRows rows)
      : shape_(rows.shape()), type_(rows.type()), stored_(std::move(rows)) {}
  /// Writes all rows: compute() or compute_rounded() of a few rows at a time, on several threads.
  virtual void compute_all(TypedRows& rows) const;
  /// Gives up the rows of stored() and all(): the next call computes them again.
  void forget() const;

 private:
  void store() const;

  Shape shape_;
  NumberType type_;
  mutable std::mutex mutex_;
  mutable TypedRows stored_;
  mutable Tensor wide_;  // of rows of another type than reals
};

/// Rows of type bfloat16 in memory: operations that do not know the type read them widened.
class Bfloat16Rows final : public DeferredRows {
 public:
  explicit Bfloat16Rows(TypedRows rows) : DeferredRows(std::move(rows)) {}
  void compute(Index first, Index count, real* out) const override;
};
}}  // namespace sar
