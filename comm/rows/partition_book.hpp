// SPDX-License-Identifier: MIT

/// PartitionBook: the contiguous ranges of node ids that the ranks own.
#pragma once

#include <sar/config.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

class Communicator;

/// The ranges of node ids of all ranks.
///
/// @code
/// const PartitionBook book({0, 60, 100});  // rank 0 owns nodes 0 to 59, rank 1 owns 60 to 99
/// const int owner = book.owner(70);        // 1
/// const Index rows = book.num_nodes(1);    // 40
/// @endcode
class PartitionBook {
 public:
  PartitionBook() = default;
  /// Rank p owns [offsets[p], offsets[p + 1]). Throws InputError unless offsets start at 0 and do not
  /// decrease (a range may be empty).
  explicit PartitionBook(std::vector<Index> offsets);
  /// Returns a book of num_nodes nodes in `parts` ranges whose sizes differ by at most one.
  static PartitionBook even(Index num_nodes, int parts);
  /// Returns the book of ranks that own several consecutive parts each: rank q owns the parts from
  /// parts_of.begin(q) to parts_of.end(q).
  [[nodiscard]] PartitionBook joined(const PartitionBook& parts_of) const;

  [[nodiscard]] int num_parts() const noexcept { return static_cast<int>(offsets_.size()) - 1; }
  [[nodiscard]] Index num_nodes() const noexcept { return offsets_.back(); }
  [[nodiscard]] Index begin(int part) const { return offsets_[static_cast<std::size_t>(part)]; }
  [[nodiscard]] Index end(int part) const { return offsets_[static_cast<std::size_t>(part) + 1]; }
  [[nodiscard]] Index num_nodes(int part) const { return end(part) - begin(part); }
  /// Returns the rank that owns `node`; 0 <= node < num_nodes().
  [[nodiscard]] int owner(Index node) const;
  /// Returns the owners of several nodes.
  [[nodiscard]] std::vector<std::int32_t> owners(std::span<const Index> nodes) const;
  bool operator==(const PartitionBook&) const = default;

 private:
  std::vector<Index> offsets_{0};
};

/// Returns where each of several consecutive ranges begins, and where the last one ends: 0, s_0, s_0 + s_1,
/// ... `size` of an element: a member or a function.
template <class List, class Size = std::identity>
std::vector<Index> offsets_of_sizes(const List& list, const Size& size = {}) {
  std::vector<Index> offsets{0};
  for (const auto& each : list) offsets.push_back(offsets.back() + std::invoke(size, each));
  return offsets;
}

/// Collective. Returns the book of ids that are numbered rank by rank, of which each rank has `size`.
PartitionBook gather_book(const Communicator& comm, Index size);

}}  // namespace sar
