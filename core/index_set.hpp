/// IndexSet: a set of numbers below n as bits.
#pragma once

#include <sar/core/memory.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace sar::inline SAR_PRECISION {

/// A set of numbers below n, which numbers its members 0, 1, ... in increasing order. It takes n / 8 bytes,
/// and n / 64 more when it is numbered.
class IndexSet {
 public:
  explicit IndexSet(Index n) : bits_(static_cast<std::size_t>((n + 63) / 64), 0) {}

  void insert(Index i) noexcept { bits_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void erase(Index i) noexcept { bits_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  [[nodiscard]] bool contains(Index i) const noexcept { return (bits_[i / 64] >> (i % 64) & 1) != 0; }
  [[nodiscard]] Index size() const noexcept;
  [[nodiscard]] Array<Index> members() const;  ///< increasing
  /// visit(member) in increasing order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (Index w = 0; w < std::ssize(bits_); ++w)
      for (std::uint64_t rest = bits_[w]; rest != 0; rest &= rest - 1) visit(w * 64 + std::countr_zero(rest));
  }

  /// The first member that is not below i; where there is none, a number that is not below n.
  [[nodiscard]] Index next(Index i) const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Numbers the members: necessary before number(), and again after insert() and erase().
  void make_numbers();
  /// How many members are smaller than i.
  [[nodiscard]] Index number(Index i) const noexcept;

 private:
  Array<std::uint64_t> bits_;
  Array<Index> before_;  // how many members come before each 8 words
};

}  // namespace sar
