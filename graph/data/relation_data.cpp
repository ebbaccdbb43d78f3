// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/data/columns.hpp>
#include <sar/graph/data/relation_data.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Translates global ids of node types to those of the homogeneous form.
class FormIds {
 public:
  explicit FormIds(const GraphData& graph) : graph_(graph) {
    const PartitionBook book = book_of_form(graph);
    for (int p = 0; p < book.num_parts(); ++p) {
      Index first = book.begin(p);
      for (const NodeTypeData& type : graph.node_types) {
        first_.push_back(first);
        first += type.book.num_nodes(p);
      }
    }
  }
  void translate(const std::string& type, Array<Index>& nodes) const {
    const std::size_t t = graph_.place_of(type);
    const PartitionBook& book = graph_.node_types[t].book;
    for (Index& node : nodes) {
      const int owner = book.owner(node);
      node += first_[static_cast<std::size_t>(owner) * graph_.node_types.size() + t] - book.begin(owner);
    }
  }

 private:
  const GraphData& graph_;
  std::vector<Index> first_;  // [ranks, types]
};

}  // namespace

PartitionBook book_of_form(const GraphData& graph) {
  std::vector<Index> offsets{0};
  const int ranks = graph.node_types.empty() ? 0 : graph.node_types.front().book.num_parts();
  for (int p = 0; p < ranks; ++p) {
    offsets.push_back(offsets.back());
    for (const NodeTypeData& type : graph.node_types) offsets.back() += type.book.num_nodes(p);
  }
  return PartitionBook(std::move(offsets));
}

EdgeList edges_of_form(const GraphData& graph, const EdgeTypeData& type) {
  const FormIds ids(graph);
  EdgeList edges;
  edges.src = type.edges.src;
  edges.dst = type.edges.dst;
  edges.id = type.edges.id;
  ids.translate(type.src_type, edges.src);
  ids.translate(type.dst_type, edges.dst);
  return edges;
}

NodeData relation_data(GraphData& graph, std::size_t edge_type, const DatasetOptions& options) {
  EdgeTypeData& type = graph.edge_types[edge_type];
  NodeData data;
  data.name = graph.name + ": " + type.canonical_name();
  data.book = book_of_form(graph);
  const std::vector<Index> first = offsets_of_sizes(graph.node_types, &NodeTypeData::num_nodes);
  for (std::size_t t = 0; t < graph.node_types.size(); ++t)
    for (const Index id : graph.node_types[t].original_ids) data.original_ids.push_back(first[t] + id);
  data.edges = edges_of_form(graph, type);
  data.num_edges = type.num_edges;
  const RowsById rows(type.edges.id);
  const auto read = [&](const std::string& field, std::span<const Index> of) {
    return type.data.at(field).take(rows.of(of));
  };
  data.edge_data = read_edge_columns({fields_of(type.data), read}, options, data, type.first_added_id);
  data.edge_data.ids_are_original = type.ids_are_original;
  data.edge_data.lists = std::exchange(type.lists, {});
  const FormIds ids(graph);
  for (ListedPairs& pairs : data.edge_data.lists) {
    for (Array<Index>* nodes : {&pairs.edges.src, &pairs.negatives.src}) ids.translate(type.src_type, *nodes);
    for (Array<Index>* nodes : {&pairs.edges.dst, &pairs.negatives.dst}) ids.translate(type.dst_type, *nodes);
  }
  return data;
}

Graph construct_hetero_graph(const Communicator& comm, GraphData& graph, const GraphOptions& options) {
  return comm.agree([&] {
    std::vector<NodeTypeSpec> nodes;
    for (const NodeTypeData& type : graph.node_types)
      nodes.push_back({type.name, type.book, type.original_ids});
    std::vector<EdgeTypeSpec> relations;
    std::vector<Array<Index>> ids;
    std::vector<DataColumns> data;
    for (EdgeTypeData& type : graph.edge_types) {
      data.push_back(std::exchange(type.data, {}));
      ids.push_back(data.back().empty() ? Array<Index>{} : type.edges.id);
      relations.push_back({{type.src_type, type.name, type.dst_type}, std::exchange(type.edges, {})});
    }
    Graph made(comm, std::move(nodes), std::move(relations), options);
    for (std::size_t k = 0; k < data.size(); ++k) {
      if (data[k].empty()) continue;
      const Graph& relation = made[made.edge_types()[k]];
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
