/// LazyArray: numbers that a graph knows when somebody asks.
#pragma once

#include <sar/core/memory.hpp>

#include <functional>
#include <mutex>
#include <utility>

namespace sar::inline SAR_PRECISION {

/// Numbers that are made at the first request and kept. Several threads may ask at once.
class LazyArray {
 public:
  /// `make` communicates with nobody and gives the same numbers each time.
  explicit LazyArray(std::function<Array<Index>()> make) : make_(std::move(make)) {}

  explicit LazyArray(Array<Index> known) : kept_(std::move(known)) {}

  [[nodiscard]] const Array<Index>& get() const {
    std::call_once(once_, [this] {
      if (make_) kept_ = make_();
    });
    return kept_;
  }
  /// The numbers, which are not kept for this.
  [[nodiscard]] Array<Index> make() const { return make_ ? make_() : kept_; }
  /// Of the numbers that are kept.
  [[nodiscard]] std::size_t bytes() const noexcept { return kept_.capacity() * sizeof(Index); }

 private:
  std::function<Array<Index>()> make_;
  mutable std::once_flag once_;
  mutable Array<Index> kept_;
};

}  // namespace sar
