#include <sar/graph/partition/assignment.hpp>
#include <sar/graph/partition/partition.hpp>

namespace sar { inline namespace SAR_PRECISION {

NodePartition partition_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                              PartitionMethod method, std::uint64_t seed) {
  return comm.agree([&] {
    switch (method) {
      case PartitionMethod::contiguous:
        return NodePartition::contiguous(num_nodes, comm.size());
      case PartitionMethod::random:
        return NodePartition::random(num_nodes, comm.size(), seed);
      case PartitionMethod::metis:
      case PartitionMethod::ldg:
      case PartitionMethod::scotch:
        break;
    }
    const Array<std::int32_t> mine =
        assign_nodes(comm, num_nodes, edges, method, {.parts = comm.size(), .seed = seed});
    return NodePartition::from_assignment(comm, mine, comm.size());
  });
}

}}  // namespace sar
