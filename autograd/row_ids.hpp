// SPDX-License-Identifier: MIT

/// Row numbers or ids that a recorded operation needs until its backward pass.
#pragma once

#include <sar/config.hpp>

#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
