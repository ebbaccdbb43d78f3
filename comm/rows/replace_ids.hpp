/// Renumbering: replacing the ids of a long list by what a table says that is spread over the workers.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>

#include <cstdint>
#include <span>

namespace sar {

/// A set of numbers below n, which numbers its members 0, 1, ... in increasing order. n / 8 bytes, and n / 64
/// more when it is numbered.
class IndexSet {
 public:
  explicit IndexSet(Index n) : bits_(static_cast<std::size_t>((n + 63) / 64), 0) {}

  void insert(Index i) noexcept { bits_[i / 64] |= std::uint64_t{1} << (i % 64); }
  [[nodiscard]] bool contains(Index i) const noexcept { return (bits_[i / 64] >> (i % 64) & 1) != 0; }
  [[nodiscard]] Index size() const noexcept;
  [[nodiscard]] Array<Index> members() const;  ///< increasing

  /// Before number(), and again after every insert().
  void make_numbers();
  /// How many members are smaller than i.
  [[nodiscard]] Index number(Index i) const noexcept;

 private:
  Array<std::uint64_t> bits_;
  Array<Index> before_;  // members in front of each block of 8 words
};

/// Replaces each id by table[id]. Row i of the table lies on rank slices.owner(i), as element
/// i - slices.begin(rank) of `mine`. A rank asks for each distinct id once, so that memory is 16 bytes for
/// each of these and slices.num_nodes() / 7 bytes. Collective. The ids exist.
void replace_ids(const Communicator& comm, const PartitionBook& slices, std::span<const Index> mine,
                 std::span<Index> ids);

}  // namespace sar
