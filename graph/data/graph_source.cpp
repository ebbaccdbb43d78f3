#include <sar/core/error.hpp>
#include <sar/graph/data/distribute.hpp>
#include <sar/graph/data/edge_columns.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/node_columns.hpp>

#include <utility>

namespace sar::inline SAR_PRECISION {

std::size_t SourceTypes::node_type(const std::string& name) const {
  std::string names;
  for (std::size_t t = 0; t < nodes.size(); ++t) {
    if (nodes[t].name == name) return t;
    names += (t == 0 ? "" : ", ") + nodes[t].name;
  }
  throw InputError(concat("there is no node type ", name, ", expected one of ", names));
}

SourceTypes GraphSource::types() const {
  SourceTypes types;
  types.nodes.push_back({default_node_type, num_nodes(), node_fields()});
  types.edges.push_back(
      {default_node_type, default_edge_type, default_node_type, num_edges(), edge_fields()});
  return types;
}
EdgeList GraphSource::read_edges_of(std::size_t) {
  return read_edges();
}
DataArray GraphSource::read_node_data_of(std::size_t, const std::string& field,
                                         std::span<const Index> nodes) {
  return read_node_data(field, nodes);
}
DataArray GraphSource::read_edge_data_of(std::size_t, const std::string& field,
                                         std::span<const Index> edges) {
  return read_edge_data(field, edges);
}

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
      partition.to_partitioned(*nodes);
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
