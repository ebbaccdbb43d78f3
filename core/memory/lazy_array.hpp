/// LazyArray: an index array that is computed at its first use.
#pragma once

#include <sar/core/memory/memory.hpp>

#include <functional>
#include <mutex>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// An index array that is computed by the first get() and kept. Thread-safe.
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
  /// Returns the values without keeping them.
  [[nodiscard]] Array<Index> make() const { return make_ ? make_() : kept_; }
  /// Returns the memory of the values kept.
  [[nodiscard]] std::size_t bytes() const noexcept { return kept_.capacity() * sizeof(Index); }

 private:
  std::function<Array<Index>()> make_;
  mutable std::once_flag once_;
  mutable Array<Index> kept_;
};

}}  // namespace sar
