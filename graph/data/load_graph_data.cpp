#include <sar/graph/data/distribute.hpp>
#include <sar/graph/data/load_graph_data.hpp>
#include <sar/graph/data/partition_steps.hpp>
#include <sar/graph/partition/assignment.hpp>

#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

GraphData load_graph_data(GraphSource& source, const DatasetOptions& options) {
  const Communicator& comm = source.comm();
  return comm.agree([&] {
    require_nodes_for_ranks(source.name(), source.num_nodes(), comm.size());
    const PartitionGraphOptions how{.parts = comm.size(),
                                    .method = options.partition,
                                    .seed = options.partition_seed,
                                    .add_reverse_edges = options.add_reverse_edges,
                                    .add_self_loops = options.add_self_loops,
                                    .drop_duplicates = options.drop_duplicates};
    const auto divide = [&](const SourceTypes& types, const EdgeList& edges) {
      const std::vector<Index> first = first_of_types(types);
      if (options.partition != PartitionMethod::contiguous && options.partition != PartitionMethod::random)
        return partition_of_types(
            comm, first,
            assign_nodes(comm, first.back(), edges, options.partition,
                         {.parts = comm.size(), .seed = options.partition_seed, .first_of_type = first}),
            comm.size());
      std::vector<NodePartition> partitions;
      for (const SourceNodes& type : types.nodes)
        partitions.push_back(options.partition == PartitionMethod::random
                                 ? NodePartition::random(type.num_nodes, comm.size(), options.partition_seed)
                                 : NodePartition::contiguous(type.num_nodes, comm.size()));
      return partitions;
    };
    DistributedGraph graph = distribute_graph(source, how, divide, [](const std::string&, Index, Index) {});
    std::vector<EdgeList> edges = take_edges_of_part(graph, comm.rank(), true);
    return read_part_data(source, graph, comm.rank(), std::move(edges), how);
  });
}

}  // namespace sar
