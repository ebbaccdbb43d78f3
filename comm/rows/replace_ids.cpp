// SPDX-License-Identifier: MIT

// numbers_of_ids() is a sample sort: each rank sorts its ids, sends them to the ranks that sort_targets()
// chooses, sorts what arrives, and returns the numbers along the same route: O(n log n) time and 16 bytes
// sent for each of n ids. replace_ids() collects the distinct ids and fetches their table entries, 8 bytes
// there and 8 back; then it replaces all ids in parallel.
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/comm/rows/replace_ids.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/comm/rows/sort_targets.hpp>
#include <sar/core/memory/distinct_ids.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <array>
#include <numeric>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the positions of the ids in ascending order of the ids; equal ids keep their order.
Array<Index> sorted_order(std::span<const Index> ids) {
  Array<Index> order(ids.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(),
            [&](Index a, Index b) { return ids[a] != ids[b] ? ids[a] < ids[b] : a < b; });
  return order;
}

}  // namespace

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

}}  // namespace sar
