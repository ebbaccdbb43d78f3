#include <sar/graph/data/distribute.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/node_columns.hpp>

#include <utility>

namespace sar::inline SAR_PRECISION {

NodeData load_graph(GraphSource& source, const DatasetOptions& options) {
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
    return data;
  });
}

}  // namespace sar
