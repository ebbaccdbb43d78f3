/// GradientRows: gradients of rows on their way to the owners, as real numbers or in double precision.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// A handle, as Tensor: copies share the memory. Undefined where no gradient is required.
class GradientRows {
 public:
  GradientRows() = default;
  /// The rows of a tensor.
  GradientRows(Tensor rows) : reals_(std::move(rows)), shape_(reals_.shape()) {}  // NOLINT: converts
  /// Returns uninitialized rows in double precision.
  [[nodiscard]] static GradientRows of_doubles(const Shape& shape) {
    GradientRows rows;
    rows.shape_ = shape;
    rows.doubles_ = std::make_shared<Array<double>>(static_cast<std::size_t>(shape.size()));
    return rows;
  }
  /// Returns `rows` uninitialized rows of the same size and precision.
  [[nodiscard]] GradientRows other(Index rows) const {
    return in_double() ? of_doubles(shape_.with_rows(rows)) : GradientRows(Tensor(shape_.with_rows(rows)));
  }

  [[nodiscard]] bool defined() const noexcept { return shape_.dims() > 0; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] bool in_double() const noexcept { return doubles_ != nullptr; }
  /// The values, unless in_double().
  [[nodiscard]] Tensor& reals() noexcept { return reals_; }
  /// The values, if in_double().
  [[nodiscard]] Array<double>& doubles() noexcept { return *doubles_; }
  /// The memory of value i and of those behind it.
  [[nodiscard]] const void* at(Index i) const noexcept {
    if (in_double()) return doubles_->data() + i;
    return reals_.data() + i;
  }
  void set_zero() {
    if (in_double())
      std::ranges::fill(*doubles_, 0.0);
    else
      reals_.fill(0);
  }

 private:
  Tensor reals_;
  std::shared_ptr<Array<double>> doubles_;
  Shape shape_;
};

}}  // namespace sar
