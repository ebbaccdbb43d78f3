// SPDX-License-Identifier: MIT

// The upper half of an id's hash chooses the rank that stores its entry, the lower half the slot in that
// rank's table: linear probing, O(1) on average. Construction sends 16 bytes per id to its entry. find()
// sends 8 bytes per id there and 8 back.
#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/random/mix.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {
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
