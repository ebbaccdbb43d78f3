// SPDX-License-Identifier: MIT

/// The rows of the long operand of a product: a matrix in memory, of `real` or bfloat16 numbers, or deferred
/// rows that are computed just before they are multiplied, few enough at a time to stay in the L2 cache. For
/// implementation files of core/, and for operations that pass their operands on.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/products/product.hpp>
#include <sar/core/tensor/deferred_rows.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Where a thread computes deferred rows.
struct RowBuffer {
  Array<real> reals;
  Array<Bfloat16> bfloat16;
};

/// The long operand of a product: a Tensor, TypedRows of type reals or bfloat16, or DeferredRows.
class RowOperand {
 public:
  RowOperand(const Tensor& rows) : rows_(rows), shape_(rows.shape()) {}     // NOLINT: a tensor is an operand
  RowOperand(const TypedRows& rows) : rows_(rows), shape_(rows.shape()) {}  // NOLINT
  /// `rows` must outlive this object. If they were computed already, the stored ones are used.
  RowOperand(const DeferredRows& rows)  // NOLINT
      : rows_(rows.computed()), deferred_(rows_.defined() ? nullptr : &rows), shape_(rows.shape()) {}

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] Index num_rows() const { return shape_[0]; }
  [[nodiscard]] Index row_size() const { return shape_.row_size(); }
  [[nodiscard]] bool is_deferred() const { return deferred_ != nullptr; }
  /// Whether the numbers are stored in bfloat16, or rounded to it.
  [[nodiscard]] bool is_bfloat16() const {
    return deferred_ != nullptr ? deferred_->type() == NumberType::bfloat16 : rows_.is_bfloat16();
  }

  /// Returns rows [begin, end): a view of those in memory, or of `memory` after computing them there.
  [[nodiscard]] MatrixView view(Index begin, Index end, Array<real>& memory) const {
    const Index columns = row_size();
    if (rows_.is_bfloat16())
      return {nullptr, end - begin, columns, columns, 1, rows_.bfloat16() + begin * columns};
    if (deferred_ == nullptr) return {rows_.reals().row(begin), end - begin, columns, columns, 1};
    const auto numbers = static_cast<std::size_t>((end - begin) * columns + cache_line);
    if (memory.size() < numbers) memory.resize(numbers);
    deferred_->compute(begin, end - begin, memory.data());
    return {memory.data(), end - begin, columns, columns, 1};
  }
  /// The same, with numbers in bfloat16 as reals.
  [[nodiscard]] MatrixView view_of_reals(Index begin, Index end, Array<real>& memory) const {
    if (!rows_.is_bfloat16()) return view(begin, end, memory);
    const Index columns = row_size();
    const auto numbers = static_cast<std::size_t>((end - begin) * columns + cache_line);
    if (memory.size() < numbers) memory.resize(numbers);
    widen(rows_.bfloat16() + begin * columns, (end - begin) * columns, memory.data());
    return {memory.data(), end - begin, columns, columns, 1};
  }
  /// The same as view(), with deferred rows in their type.
  [[nodiscard]] MatrixView view(Index begin, Index end, RowBuffer& memory) const {
    if (deferred_ == nullptr || !is_bfloat16()) return view(begin, end, memory.reals);
    const Index columns = row_size();
    const auto numbers = static_cast<std::size_t>((end - begin) * columns);
    if (memory.bfloat16.size() < numbers) memory.bfloat16.resize(numbers);
    deferred_->compute_rounded(begin, end - begin, memory.bfloat16.data());
    return {nullptr, end - begin, columns, columns, 1, memory.bfloat16.data()};
  }
  /// Returns how many numbers behind the last row of view(begin, end, memory) or view_of_reals() may be read.
  [[nodiscard]] Index readable_behind(Index end) const {
    return deferred_ == nullptr && !rows_.is_bfloat16() ? (num_rows() - end) * row_size() : cache_line;
  }
  /// Returns the memory that view(begin, end, memory) reads; rows beyond the end are ignored.
  [[nodiscard]] std::span<const std::byte> reads(Index begin, Index end) const {
    const Index last = std::min(end, num_rows()), count = std::max<Index>(last - begin, 0);
    if (count == 0) return {};
    if (deferred_ != nullptr) return deferred_->reads(begin, count);
    return memory_of(static_cast<const std::byte*>(rows_.at(begin * row_size())),
                     count * row_size() * bytes_of(rows_.type()));
  }

 private:
  TypedRows rows_;  // undefined if deferred
  const DeferredRows* deferred_ = nullptr;
  Shape shape_;
};

}}  // namespace sar
