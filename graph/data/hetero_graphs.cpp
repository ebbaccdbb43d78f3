#include <sar/graph/data/hetero_graphs.hpp>

#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

HeteroGraph construct_hetero_graph(const Communicator& comm, GraphData& graph, const GraphOptions& options) {
  return comm.agree([&] {
    std::vector<HeteroGraph::NodeTypeSpec> nodes;
    for (const NodeTypeData& type : graph.node_types)
      nodes.push_back({type.name, type.book, type.original_ids});
    std::vector<HeteroGraph::EdgeTypeSpec> relations;
    std::vector<Array<Index>> ids;
    std::vector<DataColumns> data;
    for (EdgeTypeData& type : graph.edge_types) {
      data.push_back(std::exchange(type.data, {}));
      ids.push_back(data.back().empty() ? Array<Index>{} : type.edges.id);
      relations.push_back({{type.src_type, type.name, type.dst_type}, std::exchange(type.edges, {})});
    }
    HeteroGraph made(comm, std::move(nodes), std::move(relations), options);
    for (std::size_t k = 0; k < data.size(); ++k) {
      if (data[k].empty()) continue;
      const GraphShardManager& relation = made[made.edge_types()[k]];
      const Array<Index> rows = RowsById(ids[k]).of(relation.edge_ids());
      for (const auto& [name, column] : data[k]) relation.edata()[name] = column.take(rows).to_tensor();
    }
    for (const NodeTypeData& type : graph.node_types) {
      for (const auto& [name, column] : type.data) made.ndata(type.name)[name] = column.to_tensor();
      for (const auto& [name, column] : type.sparse)
        made.ndata(type.name)[name] = Variable(to_sparse_matrix(column));
    }
    return made;
  });
}

}}  // namespace sar
