#include <sar/graph/partition/assignment.hpp>
#include <sar/graph/partition/partition.hpp>

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

}}  // namespace sar
