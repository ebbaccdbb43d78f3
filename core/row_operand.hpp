/// The rows of the long operand of a product: those of a matrix in memory, or rows that are computed where
/// they are multiplied, so few at a time that they stay in the second cache. For implementation files of
/// core/, and for operations that pass their operands on.
#pragma once

#include <sar/core/deferred_rows.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/product.hpp>
#include <sar/core/tensor.hpp>

#include <algorithm>
#include <span>

namespace sar::inline SAR_PRECISION {

class RowOperand {
 public:
  RowOperand(const Tensor& rows) : rows_(rows), shape_(rows.shape()) {}  // NOLINT: a tensor is an operand
  /// `rows` must stay. They are not computed where they are in memory already.
  RowOperand(const DeferredRows& rows)  // NOLINT
      : rows_(rows.computed()), deferred_(rows_.defined() ? nullptr : &rows), shape_(rows.shape()) {}

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] Index num_rows() const { return shape_[0]; }
  [[nodiscard]] Index row_size() const { return shape_.row_size(); }
  [[nodiscard]] bool is_deferred() const { return deferred_ != nullptr; }

  /// Rows [begin, end): where they lie, or computed to `memory`.
  [[nodiscard]] MatrixView view(Index begin, Index end, Array<real>& memory) const {
    const Index columns = row_size();
    if (deferred_ == nullptr) return {rows_.row(begin), end - begin, columns, columns, 1};
    const auto numbers = static_cast<std::size_t>((end - begin) * columns + cache_line);
    if (memory.size() < numbers) memory.resize(numbers);
    deferred_->compute(begin, end - begin, memory.data());
    return {memory.data(), end - begin, columns, columns, 1};
  }
  /// Numbers behind the last row of view(begin, end, memory) that may be read.
  [[nodiscard]] Index readable_behind(Index end) const {
    return deferred_ == nullptr ? (num_rows() - end) * row_size() : cache_line;
  }
  /// What view(begin, end, memory) reads, of the rows that are there.
  [[nodiscard]] std::span<const real> reads(Index begin, Index end) const {
    const Index last = std::min(end, num_rows()), count = std::max<Index>(last - begin, 0);
    if (deferred_ != nullptr) return count == 0 ? std::span<const real>() : deferred_->reads(begin, count);
    return {rows_.data() + begin * row_size(), static_cast<std::size_t>(count * row_size())};
  }

 private:
  Tensor rows_;  // undefined while they are deferred
  const DeferredRows* deferred_ = nullptr;
  Shape shape_;
};

}  // namespace sar
