// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/data/columns.hpp>
#include <sar/graph/data/graph_steps.hpp>
#include <sar/graph/data/graph_view.hpp>
#include <sar/graph/data/splits.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

bool has_field(const NodeTypeData& nodes, const std::string& field) {
  return nodes.data.contains(field) || nodes.sparse.contains(field);
}

void read_columns_of(const Communicator& comm, const NodeTypeData& nodes, const DatasetOptions& options,
                     NodeData& data) {
  const auto read = [&](const std::string& field, std::span<const Index> rows) {
    const auto sparse = nodes.sparse.find(field);
    if (sparse != nodes.sparse.end()) return sparse->second.dense_rows(rows);
    return nodes.data.at(field).take({rows.begin(), rows.end()});
  };
  const auto read_sparse = [&](const std::string& field) -> const SparseArray& {
    return nodes.sparse.at(field);
  };
  const auto place_of = [&](const std::string& field) { return data.name + ": " + field; };
  read_node_columns(comm, {fields_of(nodes), read, read_sparse, place_of}, options, data);
}

}  // namespace

NodeData to_node_data(const Communicator& comm, GraphData graph, const DatasetOptions& options) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("to_node_data").equal(options));
    require_one_type(graph.name, graph.node_types.size(), graph.edge_types.size());
    const NodeTypeData& nodes = graph.node_types[0];
    EdgeTypeData& edges = graph.edge_types[0];
    require_nodes_for_ranks(graph.name, nodes.book.num_nodes(), comm.size());
    if (const std::string weight = weight_field(fields_of(edges.data), options, graph.name); !weight.empty())
      edges.edges.weight =
          to_edge_weights(edges.data.at(weight), edges.edges.id, concat(graph.name, ": ", weight));
    DataColumns edge_columns = std::move(edges.data);
    const RowsById rows(options.edge_data ? edges.edges.id : Array<Index>());
    add_edges(comm, options, graph);
    if (options.add_reverse_edges) send_edges(comm, graph);
    drop_edges(comm, options, graph);
    NodeData data = without_columns(graph);
    if (options.edge_data) {
      const auto read = [&](const std::string& field, std::span<const Index> ids) {
        return edge_columns.at(field).take(rows.of(ids));
      };
      data.edge_data =
          read_edge_columns({fields_of(edge_columns), read}, options, data, edges.first_added_id);
      data.edge_data.ids_are_original = edges.ids_are_original;
    }
    edge_columns.clear();
    read_columns_of(comm, nodes, options, data);
    return data;
  });
}

NodeData node_data_of(const Communicator& comm, const GraphData& graph, const std::string& type,
                      const DatasetOptions& options) {
  return comm.agree([&] {
    const NodeTypeData& nodes = graph.node_type(type);
    comm.require_equal(CollectiveCall("node_data_of").equal("type", type).equal(options));
    DatasetOptions here = options;
    here.fields.clear();
    for (const auto& [what, field] : options.fields)
      if (has_field(nodes, field)) here.fields[what] = field;
    here.features = options.features && (here.fields.contains("features") || has_field(nodes, "features") ||
                                         has_field(nodes, "feat"));
    NodeData data;
    data.name = graph.is_homogeneous() ? graph.name : graph.name + ": " + type;
    data.book = nodes.book;
    data.original_ids = nodes.original_ids;
    data.ids_are_original = nodes.ids_are_original;
    read_columns_of(comm, nodes, here, data);
    return data;
  });
}

NodeData category_data(const Communicator& comm, const GraphData& graph, const std::string& category,
                       const DatasetOptions& options, bool for_training) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("category_data")
                                       .equal("category", category)
                                       .equal("choice of training", for_training)
                                       .equal(options));
    for (const auto& [what, field] : options.fields)
      require<InputError>(
          what.starts_with("edge_") || what == "weight" ||
              std::ranges::any_of(graph.node_types,
                                  [&](const NodeTypeData& type) { return has_field(type, field); }),
          graph.name, ": no type of nodes has data named ", field, ", expected one, which shall be the ",
          what);
    NodeData data = node_data_of(comm, graph, category, options);
    const DataColumns& mine = graph.node_type(category).data;
    for (const std::string& what :
         {options.field("train_mask"), options.field("val_mask"), options.field("test_mask"),
          options.field("labels"), std::string("label")}) {
      const bool may_miss = what == "label" || (what == "labels" && mine.contains("label"));
      if (mine.contains(what) || may_miss) continue;
      for (const NodeTypeData& other : graph.node_types)
        require<InputError>(!other.data.contains(what), graph.name, ": ", what,
                            " are data of the nodes of type ", other.name,
                            ", expected them for the category ", category);
    }
    if (for_training) require_training_labels(comm, data);
    return data;
  });
}
}}  // namespace sar
