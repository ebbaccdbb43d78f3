// SPDX-License-Identifier: MIT

// A counting sort groups the rows by target: O(rows + P) time. The constructor sends P numbers
// (all_to_all) and makes one all_reduce.
//
// Rows then move in as many chunks as the busiest rank needs, about 4 MiB each. In every chunk, each pair
// of ranks exchanges an equal share of its rows; a rank's own rows are copied directly, in parallel. Bytes
// moved per row: packed, sent, unpacked.
#include <sar/comm/communicator_state.hpp>
#include <sar/comm/mpi_objects.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>

#include <climits>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

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

Tensor RowRoute::forward(const Tensor& rows) const {
  return comm_.agree([&] {
    Tensor arrived(rows.shape().with_rows(num_arrived()));
    move_forward(reinterpret_cast<const std::byte*>(rows.data()), rows.row_size() * Index{sizeof(real)},
                 reinterpret_cast<std::byte*>(arrived.data()));
    return arrived;
  });
}

Tensor RowRoute::back(const Tensor& arrived) const {
  return comm_.agree([&] {
    Tensor rows(arrived.shape().with_rows(num_rows()));
    move_back(reinterpret_cast<const std::byte*>(arrived.data()), arrived.row_size() * Index{sizeof(real)},
              reinterpret_cast<std::byte*>(rows.data()));
    return rows;
  });
}

// One all_to_all_v carries the row numbers to the owners, 8 bytes per row. Owners copy the requested rows
// to a buffer; then all receives and all sends are posted at once. Bytes moved per row: read, packed and
// sent by its owner; received in place if the rows of an owner are adjacent in `ids`, otherwise copied
// once more by finish().

RowPull::RowPull(const Communicator& comm, Index row_bytes, std::byte* out)
    : comm_(comm), row_bytes_(row_bytes), out_(out) {}

// The delegated constructor completes first: if a later step fails, the destructor waits for posted messages.
RowPull::RowPull(const Communicator& comm, const PartitionBook& book, const std::byte* mine, Index row_bytes,
                 std::span<const Index> ids, std::byte* out)
    : RowPull(comm, row_bytes, out) {
  comm.agree([&] {
    wanted_ = RowsByOwner(book, ids, "pull_all");
    const int me = comm.rank();
    std::vector<Index> counts(comm.size());
    // Send the requested row numbers to the owners, then pack the rows that others request from this rank.
    for (int q = 0; q < comm.size(); ++q) counts[q] = q == me ? 0 : wanted_.size(q);
    Array<Index> asking(wanted_.rows);  // without this rank's own rows, which are copied locally
    asking.erase(asking.begin() + wanted_.begin[me], asking.begin() + wanted_.begin[me + 1]);
    const auto asked = comm.all_to_all_v(std::span<const Index>(asking), counts);
    outgoing_.resize(asked.values.size() * row_bytes);
    copy_rows(
        std::ssize(asked.values), row_bytes, mine, [&](Index k) { return asked.values[k]; }, outgoing_.data(),
        std::identity());
    // Rows that are not adjacent in `ids` need a buffer; the others are received in place.
    Index buffered = 0;
    for (int q = 0; q < comm.size(); ++q)
      if (q != me && !wanted_.lie_together(q)) buffered += wanted_.size(q);
    incoming_.resize(buffered * row_bytes);
    const std::span<const Index> own = wanted_.rows_of(me), places = wanted_.places_of(me);
    copy_rows(
        std::ssize(own), row_bytes, mine, [&](Index k) { return own[k]; }, out,
        [&](Index k) { return places[k]; });
    post(asked.counts);
  });
}

// Posts all receives, then all sends; each message has at most max_collective_size() bytes. Allocates before
// the synchronization point, so that later only MPI can fail.
void RowPull::post(std::span<const Index> out_counts) {
  const Index most = static_cast<Index>(std::min<std::size_t>(comm_.max_collective_size(), INT_MAX));
  const int size = comm_.size(), me = comm_.rank();
  std::size_t messages = 0;
  for (int q = 0; q < size; ++q) messages += 2 + (out_counts[q] + wanted_.size(q)) * row_bytes_ / most;
  requests_.reserve(messages);
  comm_.synchronize("pull_all");
  const int tag = comm_.new_tag();
  const auto each_message = [&](Index bytes, const auto& post_one) {
    for (Index begin = 0; begin < bytes; begin += most)
      post_one(begin, static_cast<int>(std::min(most, bytes - begin)));
  };
  std::byte* in = incoming_.data();
  const std::byte* out = outgoing_.data();
  Index received = 0;
  for (int q = 0; q < size; ++q) {
    const Index bytes_of_q = wanted_.size(q) * row_bytes_;
    if (q == me || bytes_of_q == 0) continue;
    const bool in_place = wanted_.lie_together(q);
    std::byte* const to = in_place ? out_ + wanted_.places_of(q)[0] * row_bytes_ : in;
    each_message(bytes_of_q, [&](Index begin, int bytes) {
      MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
      check_mpi(MPI_Irecv(to + begin, bytes, MPI_BYTE, q, tag, comm_.handle(), &request), "MPI_Irecv");
    });
    if (!in_place) in += bytes_of_q;
    received += bytes_of_q;
  }
  for (int q = 0; q < size; ++q) {
    each_message(out_counts[q] * row_bytes_, [&](Index begin, int bytes) {
      MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
      check_mpi(MPI_Isend(out + begin, bytes, MPI_BYTE, q, tag, comm_.handle(), &request), "MPI_Isend");
    });
    out += out_counts[q] * row_bytes_;
  }
  comm_.add_to_stats(
      {.bytes_sent = outgoing_.size(), .bytes_received = static_cast<std::uint64_t>(received)});
}

void RowPull::wait() {
  if (requests_.empty()) return;
  CommStats stats;
  {
    const WaitTimer timer(stats, "pull_all");
    check_mpi(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
              "MPI_Waitall");
  }
  requests_.clear();
  comm_.add_to_stats(stats);
}

RowPull::~RowPull() {
  if (requests_.empty() || !mpi_runs()) return;
  try {
    wait();
  } catch (const CommunicationError&) {  // no one uses the rows
  }
}

void RowPull::finish() {
  wait();
  const std::byte* in = incoming_.data();
  for (int q = 0; q < comm_.size(); ++q) {
    if (q == comm_.rank() || wanted_.lie_together(q)) continue;
    const std::span<const Index> places = wanted_.places_of(q);
    copy_rows(std::ssize(places), row_bytes_, in, std::identity(), out_, [&](Index k) { return places[k]; });
    in += std::ssize(places) * row_bytes_;
  }
  incoming_ = {};
  outgoing_ = {};
}

// A counting sort by owner, whose range is found by binary search: O(n log P) time for n ids and P ranks,
// and 16 bytes per id. Each id is looked up twice.

void require_rows(const PartitionBook& book, std::span<const Index> ids, const char* call) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    require<InputError>(0 <= ids[i] && ids[i] < book.num_nodes(), call, ": id ", i, " of ", ids.size(),
                        " is ", ids[i], ", expected ", index_range(book.num_nodes()));
}

RowsByOwner::RowsByOwner(const PartitionBook& book, std::span<const Index> ids, const char* call)
    : begin(book.num_parts() + 1), rows(ids.size()), places(ids.size()) {
  require_rows(book, ids, call);
  for (const Index id : ids) ++begin[book.owner(id) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Index> next(begin);
  for (Index i = 0; i < std::ssize(ids); ++i) {
    const int owner = book.owner(ids[i]);
    const Index k = next[owner]++;
    rows[k] = ids[i] - book.begin(owner);
    places[k] = i;
  }
}
}}  // namespace sar
