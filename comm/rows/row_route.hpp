/// RowRoute: rows go to the ranks that own them, and answers come back the same way. All routing of rows in
/// any order goes through it; a list of any length goes along one short route after the other (route_chunks).
///
/// Room comm/rows: How rows of tensors change ranks. A partition book tells who owns a row; a route takes
/// rows to their owners and answers back; the halo exchange brings the rows that a stage reads.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Row i of this rank goes to rank targets[i]. The rows that arrive at a rank are ordered by the rank they
/// come from, then as they were there. A rank sends and receives about 4 MiB at a time. A route keeps 4 bytes
/// a row, and none when the targets ascend.
class RowRoute {
 public:
  /// Targets are ranks. Collective. Throws InputError, the same on every rank, for 2^31 rows or more.
  RowRoute(const Communicator& comm, std::span<const std::int32_t> targets);

  [[nodiscard]] Index num_rows() const noexcept { return out_begin_.back(); }
  [[nodiscard]] Index num_arrived() const noexcept { return in_begin_.back(); }

  /// Sends one trivially copyable value for each row to the row's target. Collective.
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
  /// Sends one value for each row that arrived to where the row came from. Collective.
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

  /// The same for rows of any length, which is the same on every rank. Collective.
  void forward(const std::byte* rows, Index row_bytes, std::byte* arrived) const {
    comm_.agree([&] { move_forward(rows, row_bytes, arrived); });
  }
  /// Collective.
  void back(const std::byte* arrived, Index row_bytes, std::byte* rows) const {
    comm_.agree([&] { move_back(arrived, row_bytes, rows); });
  }

 private:
  void move_forward(const std::byte* rows, Index row_bytes, std::byte* arrived) const;
  void move_back(const std::byte* arrived, Index row_bytes, std::byte* rows) const;

  Communicator comm_;
  Array<std::int32_t> order_;     // the rows by target; empty when they lie so already
  std::vector<Index> out_begin_;  // where the rows to each target begin
  std::vector<Index> in_begin_;   // where the rows from each rank begin
  Index busiest_ = 0;             // the most rows that a rank sends to others, or receives from them
};

/// About how many bytes a rank sends at a time.
constexpr Index route_chunk_bytes = Index{1} << 22;

/// Routes a list of any length in chunks: row i of this rank goes to rank target(i), and
/// body(route, first, last) sends something along the route of the rows [first, last). All ranks take part in
/// as many chunks as the longest list has, so chunks may be empty. row_bytes is the length of the rows that
/// travel. Collective, and so is the body.
template <class Target, class Body>
void route_chunks(const Communicator& comm, Index num_rows, Index row_bytes, const Target& target,
                  const Body& body) {
  comm.agree([&] {
    const Index chunk = std::max<Index>(
        1, route_chunk_bytes / (row_bytes + 8));  // while it is made, a route has 8 bytes a row
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

}  // namespace sar
