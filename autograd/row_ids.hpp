/// Row numbers or global ids that a recorded operation refers to until its backward pass.
#pragma once

#include <sar/config.hpp>

#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Made from an lvalue container or a std::span, it borrows the ids: the caller keeps them alive until the
/// backward pass is over or the tape is destroyed. Made from an rvalue container or a list, it takes the ids
/// and shares them with the tape.
class RowIds {
 public:
  RowIds() = default;  ///< none
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
  /// Ids that live as long as `owner`.
  RowIds(std::span<const Index> ids, std::shared_ptr<const void> owner)
      : ids_(ids), owner_(std::move(owner)) {}

  [[nodiscard]] std::span<const Index> span() const noexcept { return ids_; }
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(ids_.size()); }

 private:
  std::span<const Index> ids_;
  std::shared_ptr<const void> owner_;
};

}  // namespace sar
