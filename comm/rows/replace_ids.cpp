#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/comm/rows/replace_ids.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/memory/distinct_ids.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

Array<Index> numbers_of_ids(const Communicator& comm, std::span<const Index> ids) {
  return comm.agree([&] {
    // Bucket sort over the ranks: rank r sorts the ids in the r-th part of [smallest, largest]; the numbers
    // of the ids before them are the counts of the lower ranks. `ends` holds the largest id and minus the
    // smallest.
    std::array<Index, 2> ends{0, -std::numeric_limits<Index>::max()};
    for (const Index id : ids) ends = {std::max(ends[0], id), std::max(ends[1], -id)};
    comm.all_reduce(std::span<Index>(ends), ReduceOp::max);
    const Index first = -ends[1];
    const auto from_first = [&](Index id) { return static_cast<std::uint64_t>(id - first); };
    const std::uint64_t length =
        from_first(ends[0]) / static_cast<std::uint64_t>(comm.size()) + 1;  // per rank
    std::vector<std::int32_t> targets(ids.size());
    std::ranges::transform(ids, targets.begin(),
                           [&](Index id) { return static_cast<std::int32_t>(from_first(id) / length); });
    const RowRoute route(comm, targets);
    const Array<Index> arrived = route.forward(ids);
    Array<Index> order(arrived.size()), number(arrived.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return arrived[a] < arrived[b]; });
    const std::vector<Index> counts = comm.all_gather(std::ssize(arrived));
    const Index before = std::accumulate(counts.begin(), counts.begin() + comm.rank(), Index{0});
    for (Index i = 0; i < std::ssize(order); ++i) number[order[i]] = before + i;
    return route.back(std::span<const Index>(number.data(), number.size()));
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
