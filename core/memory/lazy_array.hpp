// SPDX-License-Identifier: MIT

/// LazyArray: an index array that is computed at its first use.
#pragma once

#include <sar/core/memory/memory.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// An index array that is computed by the first get() or select() and kept. Thread-safe.
class LazyArray {
 public:
  /// `make` must be local (no communication) and return the same values each time.
  explicit LazyArray(std::function<Array<Index>()> make) : make_(std::move(make)) {}

  /// An array whose values are known already.
  explicit LazyArray(Array<Index> known) : kept_(std::move(known)) {}

  /// Returns the values, computing them at the first call.
  [[nodiscard]] const Array<Index>& get() const {
    std::call_once(once_, [this] {
      if (make_) kept_ = make_();
    });
    return kept_;
  }
  /// Returns the elements `places`. The first call computes all and keeps those that are not 0, if they are
  /// few: the memory of sparse values follows their number, not the length of the array.
  [[nodiscard]] Array<Index> select(std::span<const Index> places) const {
    std::call_once(select_once_, [this] {
      Array<Index> all = make();
      const Index others = std::ssize(all) - std::count(all.begin(), all.end(), Index{0});
      is_sparse_ = 2 * others < std::ssize(all);
      if (!is_sparse_) return std::call_once(once_, [&] { kept_ = std::move(all); });
      sparse_.reserve(static_cast<std::size_t>(others));
      for (Index i = 0; i < std::ssize(all); ++i)
        if (all[i] != 0) sparse_.push_back({i, all[i]});
    });
    Array<Index> values(places.size());
    std::ranges::transform(places, values.begin(), [this](Index place) {
      if (!is_sparse_) return kept_[place];
      const auto found = std::ranges::lower_bound(sparse_, place, {}, &Element::place);
      return found != sparse_.end() && found->place == place ? found->value : Index{0};
    });
    return values;
  }
  /// Returns the values without keeping them.
  [[nodiscard]] Array<Index> make() const { return make_ ? make_() : kept_; }
  /// Returns the memory of the values kept.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return kept_.capacity() * sizeof(Index) + sparse_.capacity() * sizeof(Element);
  }

 private:
  struct Element {
    Index place, value;
  };
  std::function<Array<Index>()> make_;
  mutable std::once_flag once_, select_once_;
  mutable Array<Index> kept_;
  mutable Array<Element> sparse_;  // elements that are not 0, by place, if is_sparse_
  mutable bool is_sparse_ = false;
};

}}  // namespace sar
