// SPDX-License-Identifier: MIT

/// RowRoute: sends rows to given ranks, and answers back the same way. For rows in arbitrary order, each with
/// its own rank; a long list is processed as a sequence of short routes (route_chunks). Lists that are
/// already in rank order use Communicator::all_to_all_v: counts, the requests that a halo is made from,
/// texts.
///
/// Room comm/rows: Rows to and from any rank: who owns a row (PartitionBook), routes to the owners and back,
/// tensors and files that are spread over the ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/threads/parallel.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A route that sends row i of this rank to rank targets[i]. Rows arrive ordered by source rank, then by
/// their order there. A rank sends and receives about 4 MiB at a time. A route stores 4 bytes per row, and
/// nothing per row if the targets are sorted.
class RowRoute {
 public:
  /// Collective. `targets` are ranks. Throws InputError, the same on every rank, for 2^31 rows or more.
  RowRoute(const Communicator& comm, std::span<const std::int32_t> targets);

  [[nodiscard]] Index num_rows() const noexcept { return out_begin_.back(); }
  [[nodiscard]] Index num_arrived() const noexcept { return in_begin_.back(); }

  /// Collective. Sends one trivially copyable value per row to the row's target. Returns the values that
  /// arrive.
  template <class T>
  [[nodiscard]] Array<T> forward(std::span<const T> rows) const {
    static_assert(std::is_trivially_copyable_v<T>);
    Array<T> arrived;
    comm_.agree([&] {
      arrived.resize(num_arrived());
      move_forward(reinterpret_cast<const std::byte*>(rows.data()), sizeof(T),
                   reinterpret_cast<std::byte*>(arrived.data()));
    });
    return arrived;
  }
  /// Collective. Sends one value per arrived row back to the row's source. Returns the values in the order
  /// of the rows.
  template <class T>
  [[nodiscard]] Array<T> back(std::span<const T> arrived) const {
    static_assert(std::is_trivially_copyable_v<T>);
    Array<T> rows;
    comm_.agree([&] {
      rows.resize(num_rows());
      move_back(reinterpret_cast<const std::byte*>(arrived.data()), sizeof(T),
                reinterpret_cast<std::byte*>(rows.data()));
    });
    return rows;
  }

  /// Collective. The same for rows of row_bytes bytes, the same on every rank.
  void forward(const std::byte* rows, Index row_bytes, std::byte* arrived) const {
    comm_.agree([&] { move_forward(rows, row_bytes, arrived); });
  }
  /// Collective. Sends one row per arrived row back to its source.
  void back(const std::byte* arrived, Index row_bytes, std::byte* rows) const {
    comm_.agree([&] { move_back(arrived, row_bytes, rows); });
  }
  /// Collective. The same for the rows of a tensor. The shape of a row must be the same on every rank.
  [[nodiscard]] Tensor forward(const Tensor& rows) const;
  [[nodiscard]] Tensor back(const Tensor& arrived) const;

 private:
  void move_forward(const std::byte* rows, Index row_bytes, std::byte* arrived) const;
  void move_back(const std::byte* arrived, Index row_bytes, std::byte* rows) const;

  Communicator comm_;
  Array<std::int32_t> order_;     // the rows sorted by target; empty if they are sorted already
  std::vector<Index> out_begin_;  // first row for each target
  std::vector<Index> in_begin_;   // first row from each source
  Index busiest_ = 0;             // most rows that any rank sends to others or receives from them
};

/// Approximate number of bytes that a rank sends at a time.
constexpr Index route_chunk_bytes = Index{1} << 22;

/// Routes a list of any length in chunks: row i of this rank goes to rank target(i), and body(route, first,
/// last) sends something along the route of rows [first, last). All ranks iterate over as many chunks as the
/// longest list has, so chunks may be empty. row_bytes is the length of the rows sent. Collective, as is the
/// body.
template <class Target, class Body>
void route_chunks(const Communicator& comm, Index num_rows, Index row_bytes, const Target& target,
                  const Body& body) {
  comm.agree([&] {
    const Index chunk = std::max<Index>(
        1, route_chunk_bytes / (row_bytes + 8));  // while it is built, a route takes 8 bytes per row
    const Index chunks = comm.all_reduce((num_rows + chunk - 1) / chunk, ReduceOp::max);
    std::vector<std::int32_t> targets;
    for (Index c = 0; c < chunks; ++c) {
      const Index first = std::min(num_rows, c * chunk), last = std::min(num_rows, first + chunk);
      targets.clear();
      for (Index i = first; i < last; ++i) targets.push_back(static_cast<std::int32_t>(target(i)));
      body(RowRoute(comm, targets), first, last);
    }
  });
}

// RowsByOwner: row ids grouped by owner; RowPull: rows being pulled from their owners. For the sources of
// comm/ only.

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
