#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/comm/rows/replace_ids.hpp>
#include <sar/core/parallel.hpp>

namespace sar::inline SAR_PRECISION {

void replace_ids(const Communicator& comm, const PartitionBook& slices, std::span<const Index> mine,
                 std::span<Index> ids) {
  comm.agree([&] {
    IndexSet distinct(slices.num_nodes());
    for (const Index id : ids) distinct.insert(id);
    distinct.make_numbers();
    const Array<Index> values = fetch_values(comm, slices, mine, std::span<const Index>(distinct.members()));
    parallel_for(static_cast<Index>(ids.size()), Index{1} << 14, [&](Index first, Index last) {
      for (Index& id : ids.subspan(first, last - first)) id = values[distinct.number(id)];
    });
  });
}

}  // namespace sar
