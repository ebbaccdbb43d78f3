/// The rows of the long operand of a product: a matrix in memory, or deferred rows that are computed just
/// before they are multiplied, few enough at a time to stay in the L2 cache. For implementation files of
/// core/, and for operations that pass their operands on.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/products/product.hpp>
#include <sar/core/tensor/deferred_rows.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <algorithm>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// The long operand of a product: a Tensor or DeferredRows.
class RowOperand {
 public:
  RowOperand(const Tensor& rows) : rows_(rows), shape_(rows.shape()) {}  // NOLINT: a tensor is an operand
  /// `rows` must outlive this object. If they were computed already, the stored tensor is used.
  RowOperand(const DeferredRows& rows)  // NOLINT
      : rows_(rows.computed()), deferred_(rows_.defined() ? nullptr : &rows), shape_(rows.shape()) {}

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] Index num_rows() const { return shape_[0]; }
  [[nodiscard]] Index row_size() const { return shape_.row_size(); }
  [[nodiscard]] bool is_deferred() const { return deferred_ != nullptr; }

  /// Returns rows [begin, end): a view of the tensor, or of `memory` after computing them there.
  [[nodiscard]] MatrixView view(Index begin, Index end, Array<real>& memory) const {
    const Index columns = row_size();
    if (deferred_ == nullptr) return {rows_.row(begin), end - begin, columns, columns, 1};
    const auto numbers = static_cast<std::size_t>((end - begin) * columns + cache_line);
    if (memory.size() < numbers) memory.resize(numbers);
    deferred_->compute(begin, end - begin, memory.data());
    return {memory.data(), end - begin, columns, columns, 1};
  }
  /// Returns how many numbers behind the last row of view(begin, end, memory) may be read.
  [[nodiscard]] Index readable_behind(Index end) const {
    return deferred_ == nullptr ? (num_rows() - end) * row_size() : cache_line;
  }
  /// Returns the memory that view(begin, end, memory) reads; rows beyond the end are ignored.
  [[nodiscard]] std::span<const real> reads(Index begin, Index end) const {
    const Index last = std::min(end, num_rows()), count = std::max<Index>(last - begin, 0);
    if (deferred_ != nullptr) return count == 0 ? std::span<const real>() : deferred_->reads(begin, count);
    return {rows_.data() + begin * row_size(), static_cast<std::size_t>(count * row_size())};
  }

 private:
  Tensor rows_;  // undefined if deferred
  const DeferredRows* deferred_ = nullptr;
  Shape shape_;
};

}}  // namespace sar
