// SPDX-License-Identifier: MIT

/// Row numbers that a recorded operation keeps, and rows of a table by their numbers, without a copy of them.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/config.hpp>
#include <sar/core/tensor/deferred_rows.hpp>

#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Row numbers or ids that a recorded operation needs until its backward pass.

/// A list of ids. Constructed from an lvalue container or a std::span, it borrows the ids: the caller must
/// keep them alive until the backward pass is done or the tape is destroyed. Constructed from an rvalue
/// container or an initializer list, it owns the ids and shares them with the tape.
class RowIds {
 public:
  RowIds() = default;  ///< no ids
  template <class Ids>
  requires(!std::is_same_v<std::remove_cvref_t<Ids>, RowIds> &&
           std::is_convertible_v<Ids&, std::span<const Index>>)
      RowIds(Ids&& ids) {  // NOLINT: converts by design
    if constexpr (std::is_lvalue_reference_v<Ids> || std::ranges::borrowed_range<Ids>) {
      ids_ = ids;
    } else {
      const auto owned = std::make_shared<const std::remove_cvref_t<Ids>>(std::move(ids));
      ids_ = *owned;
      owner_ = owned;
    }
  }
  RowIds(std::initializer_list<Index> ids) : RowIds(std::vector<Index>(ids)) {}
  /// Ids whose memory lives as long as `owner`.
  RowIds(std::span<const Index> ids, std::shared_ptr<const void> owner)
      : ids_(ids), owner_(std::move(owner)) {}

  [[nodiscard]] std::span<const Index> span() const noexcept { return ids_; }
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(ids_.size()); }

 private:
  std::span<const Index> ids_;
  std::shared_ptr<const void> owner_;
};

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

  /// Has no reads(): the rows are scattered over the table, and compute() prefetches them.
  void compute(Index first, Index count, real* out) const override;

 private:
  GatheredRows(const GatheredRows& all, Index begin, Index end);

  std::shared_ptr<GatheredTable> source_;
  std::size_t begin_ = 0;  // of the rows among source_->ids
};

/// Returns the deferred rows of `x`; null if it is not a result of deferred_gather_rows(). For authors of
/// operations.
std::shared_ptr<const GatheredRows> gathered_rows(const Variable& x);
}}  // namespace sar
