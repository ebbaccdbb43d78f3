// SPDX-License-Identifier: MIT

// The upper half of an id's hash chooses the rank that stores its entry, the lower half the slot in that
// rank's table: linear probing, O(1) on average. Construction sends 16 bytes per id to its entry. find()
// sends 8 bytes per id there and 8 back.
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/random.hpp>
#include <sar/core/threads/parallel.hpp>

#include <array>

namespace sar { inline namespace SAR_PRECISION {

// Each id is sent to the rank that checks it, 8 bytes per id in chunks. If ids are dense (at most about 64
// times their number), that rank has a bitmap of its share of the ids: O(ids) time. Otherwise it sorts its
// list: O(n log n). The rank depends on a hash, because ids may all be multiples of one number.

void require_unique_ids(const Communicator& comm, std::span<const Index> ids, const std::string& place) {
  comm.agree([&] {
    const auto ranks = static_cast<Index>(comm.size());
    Index largest = 0;
    for (const Index id : ids) largest = std::max(largest, id);
    largest = comm.all_reduce(largest, ReduceOp::max);
    const Index total = comm.all_reduce(static_cast<Index>(ids.size()));
    // Dense ids: a bitmap of id / ranks, which has one id for each rank. Sparse ids: sorted lists.
    const bool dense = largest / 64 <= total;
    const auto hashed = [ranks](Index id) {
      const std::uint64_t mixed = static_cast<std::uint64_t>(id) * golden_ratio >> 32;
      return static_cast<Index>(mixed * static_cast<std::uint64_t>(ranks) >> 32);
    };
    // Returns the rank that checks an id for duplicates. Ids may all be multiples of one number, hence the
    // hash.
    const auto owner = [&](Index i) {
      return dense ? (ids[i] % ranks + hashed(ids[i] / ranks)) % ranks : hashed(ids[i]);
    };
    IndexSet seen(dense ? largest / ranks + 1 : 0);
    Array<Index> sparse;
    Index twice = -1;
    route_chunks(comm, static_cast<Index>(ids.size()), sizeof(Index), owner,
                 [&](const RowRoute& route, Index first, Index last) {
                   const Array<Index> arrived = route.forward(ids.subspan(first, last - first));
                   if (!dense) sparse.insert(sparse.end(), arrived.begin(), arrived.end());
                   for (std::size_t i = 0; dense && i < arrived.size(); ++i) {
                     if (seen.contains(arrived[i] / ranks)) twice = arrived[i];
                     seen.insert(arrived[i] / ranks);
                   }
                 });
    std::sort(sparse.begin(), sparse.end());
    if (const auto pair = std::adjacent_find(sparse.begin(), sparse.end()); pair != sparse.end())
      twice = *pair;
    twice = comm.all_reduce(twice, ReduceOp::max);
    require<InputError>(twice < 0, place, ": ", twice, " occurs twice, expected each id once");
  });
}

void require_permutation(const Communicator& comm, std::span<const Index> ids, Index n,
                         const std::string& place) {
  const auto total = comm.all_reduce(static_cast<Index>(ids.size()));
  comm.agree([&] {
    require<InputError>(total == n, place, ": there are ", total, " ids, expected ", n);
    for (const Index id : ids)
      require<InputError>(0 <= id && id < n, place, ": id ", id, " does not exist, expected ",
                          index_range(n));
  });
  require_unique_ids(comm, ids, place);  // n distinct ids below n are all of them
}

// numbers_of_ids() is a sample sort: each rank sorts its ids, sends them to the ranks that sort_targets()
// chooses, sorts what arrives, and returns the numbers along the same route: O(n log n) time and 16 bytes
// sent for each of n ids. replace_ids() collects the distinct ids and fetches their table entries, 8 bytes
// there and 8 back; then it replaces all ids in parallel.

Array<Index> sorted_order(std::span<const Index> ids) {
  Array<Index> order = consecutive(0, std::ssize(ids));
  std::sort(order.begin(), order.end(),
            [&](Index a, Index b) { return ids[a] != ids[b] ? ids[a] < ids[b] : a < b; });
  return order;
}

Array<Index> numbers_of_ids(const Communicator& comm, std::span<const Index> ids) {
  return comm.agree([&] {
    const Index first = gather_book(comm, std::ssize(ids)).begin(comm.rank());
    const Array<Index> order = sorted_order(ids);
    Array<Index> sorted(ids.size());
    std::ranges::transform(order, sorted.begin(), [&](Index i) { return ids[i]; });
    // the key of an id includes its position, so that equal ids are divided, too
    const RowRoute route(comm, sort_targets(comm, std::ssize(ids), [&](Index k) {
                           return std::array{sorted[k], first + order[k]};
                         }));
    Array<Index> arrived = route.forward(std::span<const Index>(sorted));
    sorted = {};
    Index next = gather_book(comm, std::ssize(arrived)).begin(comm.rank());
    for (const Index k : sorted_order(arrived)) arrived[k] = next++;  // the ids become numbers
    const Array<Index> answers = route.back(std::span<const Index>(arrived));
    Array<Index> numbers(ids.size());
    for (Index k = 0; k < std::ssize(order); ++k) numbers[order[k]] = answers[k];
    return numbers;
  });
}

void replace_ids(const Communicator& comm, const PartitionBook& slices, std::span<const Index> mine,
                 std::span<Index> ids) {
  comm.agree([&] {
    DistinctIds distinct(slices.num_nodes());
    for (const Index id : ids) distinct.insert(id);
    distinct.make_numbers();
    const Array<Index> values = fetch_values(comm, slices, mine, std::span<const Index>(distinct.members()));
    parallel_for(static_cast<Index>(ids.size()), Index{1} << 14, [&](Index first, Index last) {
      for (Index& id : ids.subspan(first, last - first)) id = values[distinct.number(id)];
    });
  });
}

namespace {

/// The upper half chooses the rank, the lower half the slot.
std::uint64_t hash(Index id) noexcept {
  return mix(static_cast<std::uint64_t>(id) + golden_ratio);
}

/// Returns the route of each id to the rank that its hash chooses.
RowRoute route_to_entries(const Communicator& comm, std::span<const Index> ids) {
  Array<std::int32_t> ranks;
  comm.agree([&] {
    ranks.resize(ids.size());
    std::transform(ids.begin(), ids.end(), ranks.begin(), [&](Index id) {
      return static_cast<std::int32_t>(((hash(id) >> 32) * static_cast<std::uint64_t>(comm.size())) >> 32);
    });
  });
  return {comm, ranks};
}

/// A node that occurs twice, with its two numbers; these are negative if there is none.
struct GivenTwice {
  Index id = 0, first = -1, second = -1;
};

void require_once(const PartitionBook& book, const char* what, const GivenTwice& node) {
  if (node.first < 0) return;
  const int a = book.owner(node.first), b = book.owner(node.second);
  require<InputError>(a != b, "HostGraph: ", what, " ", node.id, " is given twice by rank ", a,
                      " (its nodes ", node.first - book.begin(a), " and ", node.second - book.begin(a),
                      "), expected once");
  throw InputError(concat("HostGraph: ", what, " ", node.id, " is given by rank ", a, " (its node ",
                          node.first - book.begin(a), ") and by rank ", b, " (its node ",
                          node.second - book.begin(b), "), expected one owner"));
}

}  // namespace

// Linear probing: returns the slot of the id, or the free slot where it belongs.
std::size_t IdTable::slot_of(Index id) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash(id) & mask;
  while (slots_[slot].number != none && slots_[slot].id != id) slot = (slot + 1) & mask;
  return slot;
}

Index IdTable::insert(Index id, Index number) {
  Slot& slot = slots_[slot_of(id)];
  if (slot.number != none) return slot.number;
  slot = {id, number};
  if (2 * ++used_ > slots_.size()) {
    const Array<Slot> before = std::move(slots_);
    make_slots(2 * before.size());
    for (const Slot& old : before)
      if (old.number != none) slots_[slot_of(old.id)] = old;
  }
  return number;
}

NodeDirectory::NodeDirectory(const Communicator& comm, const PartitionBook& book, std::span<const Index> ids,
                             const char* what)
    : comm_(comm) {
  const RowRoute route = route_to_entries(comm, ids);
  Array<Index> numbers;
  comm.agree([&] {
    numbers.resize(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) numbers[i] = book.begin(comm.rank()) + static_cast<Index>(i);
  });
  const Array<Index> entered = route.forward(ids);
  numbers = route.forward(std::span<const Index>(numbers));
  GivenTwice mine;
  comm.agree([&] {
    entries_ = IdTable(route.num_arrived());
    for (std::size_t i = 0; i < entered.size(); ++i)
      if (const Index first = entries_.insert(entered[i], numbers[i]); first != numbers[i])
        mine = {entered[i], first, numbers[i]};
  });
  for (const GivenTwice& node : comm.all_gather(mine)) require_once(book, what, node);
}

Array<Index> NodeDirectory::find(std::span<const Index> ids) const {
  const RowRoute route = route_to_entries(comm_, ids);
  Array<Index> asked = route.forward(ids);
  parallel_for_each(static_cast<Index>(asked.size()), Index{1} << 12,
                    [&](Index i) { asked[i] = std::max<Index>(entries_.find(asked[i]), -1); });
  return route.back(std::span<const Index>(asked));
}
}}  // namespace sar
