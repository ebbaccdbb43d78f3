// SPDX-License-Identifier: MIT

/// RowsByOwner: row ids grouped by owner; RowPull: rows being pulled from their owners. For the sources of
/// comm/ only.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <mpi.h>

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

/// A collective pull of rows. All messages are posted by the constructor, so that this rank no longer depends
/// on the others: it may make any collective call, and fail, before finish().
class RowPull : NonCopyable {
 public:
  /// Collective. Copies rows ids[0], ids[1], ... with their current values to `out`; row ids[i] is row
  /// ids[i] - book.begin(p) of `mine` on its owner p. `out` must outlive this object and is written until
  /// finish(). Buffers: the rows that other ranks requested of this rank, and received rows that are not
  /// adjacent in `ids`.
  RowPull(const Communicator& comm, const PartitionBook& book, const std::byte* mine, Index row_bytes,
          std::span<const Index> ids, std::byte* out);
  /// Waits for the messages unless finish() did.
  ~RowPull();

  /// Local. Waits for the rows and copies them to `out`.
  void finish();

 private:
  RowPull(const Communicator& comm, Index row_bytes, std::byte* out);
  void post(std::span<const Index> out_counts);
  void wait();

  Communicator comm_;
  Index row_bytes_;
  std::byte* out_;
  RowsByOwner wanted_;
  Array<std::byte> outgoing_, incoming_;
  std::vector<MPI_Request> requests_;
};

}}  // namespace sar
