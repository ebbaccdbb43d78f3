// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/data/hetero_graphs.hpp>
#include <sar/graph/data/node_columns.hpp>

#include <algorithm>
#include <string>
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

std::vector<std::string> take_edge_weights(GraphData& graph, const DatasetOptions& options) {
  const auto named = options.fields.find("weight");
  std::vector<std::string> taken;
  for (EdgeTypeData& type : graph.edge_types) {
    std::string& weight = taken.emplace_back();
    if (named != options.fields.end() && !type.data.contains(named->second)) continue;
    const std::string place = concat(graph.name, ": ", type.canonical_name());
    weight = weight_field(fields_of(type.data), options, place);
    if (!weight.empty())
      type.edges.weight = to_edge_weights(type.data.at(weight), type.edges.id, concat(place, ": ", weight));
  }
  if (named != options.fields.end() &&
      std::ranges::all_of(taken, [](const auto& name) { return name.empty(); }))
    throw InputError(concat(graph.name, ": no type of edges has data named ", named->second,
                            ", expected one, which shall be the weight"));
  return taken;
}
}}  // namespace sar
