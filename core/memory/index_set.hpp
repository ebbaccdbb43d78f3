// SPDX-License-Identifier: MIT

/// IndexSet: a set of numbers in [0, n) stored as a bitmap.
#pragma once

#include <sar/core/memory/memory.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace sar { inline namespace SAR_PRECISION {

/// A set of numbers in [0, n) that numbers its members 0, 1, ... in increasing order. Memory: n / 8 bytes,
/// plus n / 64 after make_numbers().
class IndexSet {
 public:
  explicit IndexSet(Index n) : bits_(static_cast<std::size_t>((n + 63) / 64), 0) {}

  void insert(Index i) noexcept { bits_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void erase(Index i) noexcept { bits_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  [[nodiscard]] bool contains(Index i) const noexcept { return (bits_[i / 64] >> (i % 64) & 1) != 0; }
  [[nodiscard]] Index size() const noexcept;
  [[nodiscard]] Array<Index> members() const;  ///< in increasing order
  /// Calls visit(member) for each member in increasing order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (Index w = 0; w < std::ssize(bits_); ++w)
      for (std::uint64_t rest = bits_[w]; rest != 0; rest &= rest - 1) visit(w * 64 + std::countr_zero(rest));
  }

  /// Returns the smallest member >= i, or a number >= n if there is none.
  [[nodiscard]] Index next(Index i) const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Numbers the members. Call it after the last insert() or erase() and before number().
  void make_numbers();
  /// Returns the number of members smaller than i.
  [[nodiscard]] Index number(Index i) const noexcept;

 private:
  Array<std::uint64_t> bits_;
  Array<Index> before_;  // number of members before each group of 8 words
};

}}  // namespace sar
