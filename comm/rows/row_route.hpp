// SPDX-License-Identifier: MIT

/// RowRoute: sends rows to given ranks, and answers back the same way. For rows in arbitrary order, each with
/// its own rank; a long list is processed as a sequence of short routes (route_chunks). Lists that are
/// already in rank order use Communicator::all_to_all_v: counts, the requests that a halo is made from,
/// texts.
///
/// Room comm/rows: Rows to and from any rank: who owns a row (PartitionBook), routes to the owners and back,
/// tensors that are spread over the ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

}}  // namespace sar
