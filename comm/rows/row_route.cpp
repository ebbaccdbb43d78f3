// SPDX-License-Identifier: MIT

// A counting sort groups the rows by target: O(rows + P) time. The constructor sends P numbers
// (all_to_all) and makes one all_reduce.
//
// Rows then move in as many chunks as the busiest rank needs, about 4 MiB each. In every chunk, each pair
// of ranks exchanges an equal share of its rows; a rank's own rows are copied directly, in parallel. Bytes
// moved per row: packed, sent, unpacked.
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>

#include <cstring>
#include <limits>
#include <numeric>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Row positions: row i is at order[first + i], or at first + i if `order` is empty.
struct Places {
  std::span<const std::int32_t> order;
  Index first;

  Index operator[](Index i) const { return order.empty() ? first + i : Index{order[first + i]}; }
};

void copy_rows(Index count, Index row_bytes, const std::byte* in, const Places& from, std::byte* out,
               const Places& to) {
  if (count > 0 && from.order.empty() && to.order.empty()) {
    std::memcpy(out + to.first * row_bytes, in + from.first * row_bytes, count * row_bytes);
    return;
  }
  const auto copy = [&](auto bytes) {
    for (Index i = 0; i < count; ++i) std::memcpy(out + to[i] * bytes, in + from[i] * bytes, bytes);
  };
  // copies of constant length compile to single instructions
  if (row_bytes == 4) return copy(std::integral_constant<Index, 4>());
  if (row_bytes == 8) return copy(std::integral_constant<Index, 8>());
  if (row_bytes == 16) return copy(std::integral_constant<Index, 16>());
  copy(row_bytes);
}

/// Rows grouped by rank.
struct Groups {
  std::span<const Index> begin;
  std::span<const std::int32_t> order;

  [[nodiscard]] Index size(int rank) const { return begin[rank + 1] - begin[rank]; }
};

/// Sends row i of group q of `from` to row i of this rank's group of `to` on rank q. No rank sends or
/// receives more than `busiest` rows.
void move_rows(const Communicator& comm, Index busiest, Index row_bytes, const Groups& from,
               const std::byte* in, const Groups& to, std::byte* out) {
  if (row_bytes == 0) return;
  const int me = comm.rank();
  parallel_for(from.size(me), Index{1} << 14, [&](Index first, Index last) {
    copy_rows(last - first, row_bytes, in, {from.order, from.begin[me] + first}, out,
              {to.order, to.begin[me] + first});
  });

  const Index chunk = std::max<Index>(1, route_chunk_bytes / row_bytes);
  const Index chunks = (busiest + chunk - 1) / chunk;
  std::vector<std::byte> packed;
  std::vector<Index> counts(comm.size()), arriving(comm.size());
  for (Index c = 0; c < chunks; ++c) {
    // Each group is sent in equal shares. Small groups begin at different chunks.
    const auto share = [&](const Groups& groups, int q) {
      const Index rows = q == me ? 0 : groups.size(q);
      const Index shift = (me + q) % chunks;
      const Index first = (rows * c + shift) / chunks;
      return std::pair(groups.begin[q] + first, (rows * (c + 1) + shift) / chunks - first);
    };
    for (int q = 0; q < comm.size(); ++q) {
      counts[q] = share(from, q).second * row_bytes;
      arriving[q] = share(to, q).second * row_bytes;
    }
    packed.resize(std::accumulate(counts.begin(), counts.end(), Index{0}));
    Index position = 0;
    for (int q = 0; q < comm.size(); ++q) {
      const auto [first, count] = share(from, q);
      copy_rows(count, row_bytes, in, {from.order, first}, packed.data(), {{}, position});
      position += count;
    }
    const auto received = comm.all_to_all_v(std::span<const std::byte>(packed), counts, arriving);
    position = 0;
    for (int q = 0; q < comm.size(); ++q) {
      const auto [first, count] = share(to, q);
      copy_rows(count, row_bytes, received.data(), {{}, position}, out, {to.order, first});
      position += count;
    }
  }
}

}  // namespace

RowRoute::RowRoute(const Communicator& comm, std::span<const std::int32_t> targets) : comm_(comm) {
  comm.agree([&] {
    out_begin_.assign(comm.size() + 1, 0);
    require<InputError>(targets.size() <= std::numeric_limits<std::int32_t>::max(), "rank ", comm.rank(),
                        " has ", targets.size(), " rows to send, expected less than 2^31: use more ranks");
    for (const std::int32_t target : targets) ++out_begin_[target + 1];
    std::partial_sum(out_begin_.begin(), out_begin_.end(), out_begin_.begin());
    if (!std::is_sorted(targets.begin(), targets.end())) {
      std::vector<Index> next(out_begin_);
      order_.resize(targets.size());
      for (std::size_t i = 0; i < targets.size(); ++i)
        order_[next[targets[i]]++] = static_cast<std::int32_t>(i);
    }
    std::vector<Index> counts(comm.size());
    std::adjacent_difference(out_begin_.begin() + 1, out_begin_.end(), counts.begin());
    in_begin_ = offsets_of_sizes(comm.all_to_all(counts));
    busiest_ = comm.all_reduce(std::max(num_rows(), num_arrived()) - counts[comm.rank()], ReduceOp::max);
  });
}

void RowRoute::move_forward(const std::byte* rows, Index row_bytes, std::byte* arrived) const {
  move_rows(comm_, busiest_, row_bytes, {out_begin_, order_}, rows, {in_begin_, {}}, arrived);
}

void RowRoute::move_back(const std::byte* arrived, Index row_bytes, std::byte* rows) const {
  move_rows(comm_, busiest_, row_bytes, {in_begin_, {}}, arrived, {out_begin_, order_}, rows);
}

}}  // namespace sar
