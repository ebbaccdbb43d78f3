// SPDX-License-Identifier: MIT

// With several node types, the parts are sent from the slices of the homogeneous form to the slices of
// each type: one all_to_all_v of 4 bytes per node for each type.
#include <sar/graph/partition/assignment.hpp>
#include <sar/graph/partition/partition.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

NodePartition partition_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                              PartitionMethod method, std::uint64_t seed) {
  return comm.agree([&] {
    comm.require_equal(CollectiveCall("partition_nodes")
                           .equal("number of nodes", num_nodes)
                           .equal("method", to_string(method))
                           .equal("seed", seed));
    if (method == PartitionMethod::contiguous) return NodePartition::contiguous(num_nodes, comm.size());
    if (method == PartitionMethod::random) return NodePartition::random(num_nodes, comm.size(), seed);
    const Array<std::int32_t> mine =
        assign_nodes(comm, num_nodes, edges, method, {.parts = comm.size(), .seed = seed});
    return NodePartition::from_assignment(comm, mine, comm.size());
  });
}

std::vector<NodePartition> partition_of_types(const Communicator& comm, std::span<const Index> first_of_type,
                                              Array<std::int32_t> part_of, int parts) {
  std::vector<NodePartition> partitions;
  if (first_of_type.size() == 2) {
    partitions.push_back(NodePartition::from_assignment(comm, part_of, parts));
    return partitions;
  }
  const PartitionBook slices = PartitionBook::even(first_of_type.back(), comm.size());
  const Index begin = slices.begin(comm.rank()), end = slices.end(comm.rank());
  for (std::size_t t = 0; t + 1 < first_of_type.size(); ++t) {
    // this rank's nodes of the type, to those who have them in their slices of the type
    const PartitionBook of_type = PartitionBook::even(first_of_type[t + 1] - first_of_type[t], comm.size());
    const Index first = std::clamp(first_of_type[t], begin, end),
                last = std::clamp(first_of_type[t + 1], begin, end);
    std::vector<Index> counts;
    for (int q = 0; q < comm.size(); ++q)
      counts.push_back(std::max<Index>(0, std::min(last, first_of_type[t] + of_type.end(q)) -
                                              std::max(first, first_of_type[t] + of_type.begin(q))));
    const auto mine = comm.all_to_all_v(
        std::span<const std::int32_t>(part_of).subspan(first - begin, last - first), counts);
    partitions.push_back(NodePartition::from_assignment(comm, mine.values, parts));
  }
  return partitions;
}

}}  // namespace sar
