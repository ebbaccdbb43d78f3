#include <sar/graph/data/distribute.hpp>
#include <sar/graph/data/edge_columns.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/node_columns.hpp>

#include <utility>

namespace sar::inline SAR_PRECISION {

namespace {

void read_edges_of_task(GraphSource& source, const NodePartition& partition, const DatasetOptions& options,
                        const NodeData& data, EdgeData& edges) {
  const auto read = [&](const std::string& field, std::span<const Index> ids) {
    return source.read_edge_data(field, ids);
  };
  read_edge_columns({source.edge_fields(), read}, options, data, source.num_edges(), edges);
  edges.lists = source.read_listed_pairs();
  for (ListedPairs& list : edges.lists)
    for (Array<Index>* nodes : {&list.edges.src, &list.edges.dst, &list.negatives.src, &list.negatives.dst})
      for (Index& node : *nodes) node = partition.to_partitioned(node);
}

}  // namespace

NodeData load_graph(GraphSource& source, const DatasetOptions& options, EdgeData* edges_of_task) {
  const Communicator& comm = source.comm();
  return comm.agree([&] {
    require_nodes_for_ranks(source.name(), source.num_nodes(), comm.size());
    EdgeList edges = source.read_edges();
    if (const std::string weight = weight_field(source.edge_fields(), options, source.name());
        !weight.empty()) {
      const DataArray column = source.read_edge_data(weight, edges.id);
      edges.weight = to_edge_weights(column, edges.id, source.place_of(weight));
    }
    const NodePartition partition =
        partition_nodes(comm, source.num_nodes(), edges, options.partition, options.partition_seed);
    NodeData data = distribute_edges(comm, source.name(), partition, std::move(edges), options);
    const auto read = [&](const std::string& field, Index begin, Index end) {
      return source.read_node_data(field,
                                   std::span<const Index>(data.original_ids).subspan(begin, end - begin));
    };
    const auto place_of = [&](const std::string& field) { return source.place_of(field); };
    read_node_columns(comm, {source.node_fields(), read, place_of}, options, data);
    if (edges_of_task != nullptr) read_edges_of_task(source, partition, options, data, *edges_of_task);
    return data;
  });
}

}  // namespace sar
