// SPDX-License-Identifier: MIT

/// A list of row ids, grouped by owner. For the sources of comm/ only.
#pragma once

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The rows that a rank requests, grouped by owner.
struct RowsByOwner {
  std::vector<Index> begin;  ///< first row of each owner; the last entry is the number of rows
  Array<Index> rows;         ///< local row numbers at their owner; per owner in the order of `ids`
  Array<Index> places;       ///< rows[k] is row ids[places[k]]

  RowsByOwner() = default;
  /// Throws InputError with a message that begins with `call` unless all ids are rows of the book.
  RowsByOwner(const PartitionBook& book, std::span<const Index> ids, const char* call);

  [[nodiscard]] Index size(int owner) const {
    const auto at = static_cast<std::size_t>(owner);
    return begin[at + 1] - begin[at];
  }
  [[nodiscard]] std::span<const Index> rows_of(int owner) const { return part(rows, owner); }
  [[nodiscard]] std::span<const Index> places_of(int owner) const { return part(places, owner); }
  /// Returns whether the rows of an owner are contiguous in `ids`, so that they can be received in place.
  [[nodiscard]] bool lie_together(int owner) const {
    const std::span<const Index> list = places_of(owner);
    return list.empty() || list.back() - list.front() == std::ssize(list) - 1;
  }
  /// Returns whether they are also contiguous at their owner, in the same order.
  [[nodiscard]] bool is_range(int owner) const {
    const std::span<const Index> list = rows_of(owner);
    return lie_together(owner) && std::adjacent_find(list.begin(), list.end(), [](Index a, Index b) {
                                    return b != a + 1;
                                  }) == list.end();
  }

 private:
  [[nodiscard]] std::span<const Index> part(const Array<Index>& of_all, int owner) const {
    return {of_all.data() + begin[static_cast<std::size_t>(owner)], static_cast<std::size_t>(size(owner))};
  }
};

/// Throws InputError with a message that begins with `call` unless all ids are rows of the book.
void require_rows(const PartitionBook& book, std::span<const Index> ids, const char* call);

/// Copies row from(k) of `in` to row to(k) of `out` for all k < `count`; the to(k) must be distinct.
/// Multithreaded.
template <class From, class To>
void copy_rows(Index count, Index row_bytes, const std::byte* in, const From& from, std::byte* out,
               const To& to) {
  if (row_bytes == 0) return;
  const Index grain = std::max<Index>(1, (Index{1} << 16) / row_bytes);
  parallel_for_each(count, grain, [&](Index k) {
    std::memcpy(out + to(k) * row_bytes, in + from(k) * row_bytes, row_bytes);
  });
}

}}  // namespace sar
