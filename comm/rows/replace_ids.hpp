/// Renumbering: a table that is spread over the ranks replaces the ids of a long list.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>

#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION {

/// A set of numbers below n, which numbers its members 0, 1, ... in increasing order. It takes n / 8 bytes,
/// and n / 64 more when it is numbered.
class IndexSet {
 public:
  explicit IndexSet(Index n) : bits_(static_cast<std::size_t>((n + 63) / 64), 0) {}

  void insert(Index i) noexcept { bits_[i / 64] |= std::uint64_t{1} << (i % 64); }
  [[nodiscard]] bool contains(Index i) const noexcept { return (bits_[i / 64] >> (i % 64) & 1) != 0; }
  [[nodiscard]] Index size() const noexcept;
  [[nodiscard]] Array<Index> members() const;  ///< increasing
  /// visit(member) in increasing order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (Index w = 0; w < std::ssize(bits_); ++w)
      for (std::uint64_t rest = bits_[w]; rest != 0; rest &= rest - 1) visit(w * 64 + std::countr_zero(rest));
  }

  /// Numbers the members: necessary before number(), and again after insert().
  void make_numbers();
  /// How many members are smaller than i.
  [[nodiscard]] Index number(Index i) const noexcept;

 private:
  Array<std::uint64_t> bits_;
  Array<Index> before_;  // how many members come before each 8 words
};

/// Replaces each id by table[id]. Rank slices.owner(i) stores table[i], as element i - slices.begin(rank) of
/// `mine`. The ids exist. A rank asks for each distinct id once. It needs 16 bytes for each of these, and
/// slices.num_nodes() / 7 bytes. Collective.
void replace_ids(const Communicator& comm, const PartitionBook& slices, std::span<const Index> mine,
                 std::span<Index> ids);

}  // namespace sar
