#include <sar/core/error.hpp>
#include <sar/graph/construct/edge_exchange.hpp>
#include <sar/graph/data/graph_view.hpp>
#include <sar/graph/data/labelled_nodes.hpp>
#include <sar/graph/data/node_columns.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

DataArray slice_rows(const DataArray& column, Index begin, Index end) {
  DataArray rows(column.type, column.row_shape, end - begin);
  std::copy(column.row(begin), column.row(end), rows.bytes.begin());
  return rows;
}

template <class T>
DataArray as_column(NpyType type, std::vector<Index> row_shape, std::span<const T> values, Index num_rows) {
  DataArray column(type, std::move(row_shape), num_rows);
  require<ShapeError>(column.bytes.size() == values.size_bytes(), "data of ", values.size_bytes(),
                      " bytes, expected ", column.bytes.size(), " for ", num_rows, " rows");
  std::ranges::copy(std::as_bytes(values), column.bytes.begin());
  return column;
}

void read_columns(const Communicator& comm, const NodeTypeData& nodes, const DatasetOptions& options,
                  NodeData& data) {
  const auto read = [&](const std::string& field, Index begin, Index end) {
    return slice_rows(nodes.data.at(field), begin, end);
  };
  const auto place_of = [&](const std::string& field) { return data.name + ": " + field; };
  read_node_columns(comm, {fields_of(nodes.data), read, place_of}, options, data);
}

/// The largest edge id of all ranks, -1 without edges. A graph that lost duplicates has gaps in its ids.
Index largest_id(const Communicator& comm, const NodeData& data) {
  Index largest = -1;
  for (const Index id : data.edges.id) largest = std::max(largest, id);
  largest = comm.all_reduce(largest, ReduceOp::max);
  require<InputError>(largest < Index{1} << 61, data.name, ": an edge has id ", largest,
                      ", expected less than 2^61");
  return largest;
}

/// Adds reverse edges and self loops and drops duplicates, as `options` say. The edges are with their owners;
/// new ones are numbered after all others. Sets num_edges. Returns the first number that an added edge can
/// have. Collective.
Index transform_edges(const Communicator& comm, const DatasetOptions& options, NodeData& data) {
  const int rank = comm.rank();
  const Index first_id = 1 + largest_id(comm, data);
  Index next_id = first_id;
  const bool weighted = comm.all_reduce(data.edges.weight.empty() ? 0 : 1, ReduceOp::max) == 1;
  if (options.add_reverse_edges) {
    EdgeList reverse = data.edges;
    std::swap(reverse.src, reverse.dst);
    for (Index& id : reverse.id) id += next_id;
    exchange_edges(comm, data.book, std::move(reverse), weighted, data.edges);
    next_id *= 2;
  }
  if (options.add_self_loops) {
    append_self_loops(data.book.begin(rank), data.original_ids, next_id, weighted, data.edges);
    if (options.remaining_self_loops)
      keep_remaining_self_loops(data.book.begin(rank), data.book.end(rank), data.edges);
  }
  if (options.drop_duplicates) drop_duplicates(data.book.begin(rank), data.book.end(rank), data.edges);
  data.num_edges = comm.all_reduce(data.edges.size());
  return first_id;
}

}  // namespace

void require_nodes_for_ranks(const std::string& name, Index num_nodes, int ranks) {
  require<InputError>(num_nodes > 0 && num_nodes >= ranks, name, ": the graph has ", num_nodes,
                      " nodes, expected at least one for each of the ", ranks, " ranks");
}

NodeData view_of_graph(const Communicator& comm, GraphData& graph, const DatasetOptions& options,
                       FunctionRef<void(NodeData&)> read_nodes, const EdgeColumns& edge_columns,
                       EdgeData* edges_of_task) {
  NodeTypeData& nodes = graph.node_types[0];
  EdgeTypeData& edges = graph.edge_types[0];
  NodeData data;
  data.name = graph.name;
  data.book = nodes.book;
  data.original_ids = std::move(nodes.original_ids);
  data.ids_are_original = nodes.ids_are_original;
  data.edges = std::move(edges.edges);
  const Index first_added_id = std::min(edges.first_added_id, transform_edges(comm, options, data));
  if (edges_of_task != nullptr) {
    read_edge_columns(edge_columns, options, data, first_added_id, *edges_of_task);
    edges_of_task->ids_are_original = edges.ids_are_original;
  }
  edges.data.clear();
  read_nodes(data);
  return data;
}

NodeData to_node_data(const Communicator& comm, GraphData graph, const DatasetOptions& options,
                      EdgeData* edges_of_task) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("to_node_data").equal(options));
    require_one_type(graph.name, graph.node_types.size(), graph.edge_types.size());
    const NodeTypeData& nodes = graph.node_types[0];
    EdgeTypeData& edges = graph.edge_types[0];
    require_nodes_for_ranks(graph.name, nodes.book.num_nodes(), comm.size());
    if (const std::string weight = weight_field(fields_of(edges.data), options, graph.name); !weight.empty())
      edges.edges.weight =
          to_edge_weights(edges.data.at(weight), edges.edges.id, concat(graph.name, ": ", weight));
    const RowsById rows(edges_of_task != nullptr ? edges.edges.id : Array<Index>());
    const auto read_nodes = [&](NodeData& data) { read_columns(comm, nodes, options, data); };
    const auto read_edges = [&](const std::string& field, std::span<const Index> ids) {
      return edges.data.at(field).take(rows.of(ids));
    };
    return view_of_graph(comm, graph, options, read_nodes, {fields_of(edges.data), read_edges},
                         edges_of_task);
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
      if (nodes.data.contains(field)) here.fields[what] = field;
    here.features = options.features && (here.fields.contains("features") ||
                                         nodes.data.contains("features") || nodes.data.contains("feat"));
    NodeData data;
    data.name = graph.is_homogeneous() ? graph.name : graph.name + ": " + type;
    data.book = nodes.book;
    data.original_ids = nodes.original_ids;
    data.ids_are_original = nodes.ids_are_original;
    read_columns(comm, nodes, here, data);
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
                                  [&](const NodeTypeData& type) { return type.data.contains(field); }),
          graph.name, ": no type of nodes has data named ", field, ", expected one, which shall be the ",
          what);
    NodeData data = node_data_of(comm, graph, category, options);
    const DataColumns& mine = graph.node_type(category).data;
    const auto name_of = [&](const char* what) {
      const auto named = options.fields.find(what);
      return named == options.fields.end() ? std::string(what) : named->second;
    };
    for (const std::string& what : {name_of("train_mask"), name_of("val_mask"), name_of("test_mask"),
                                    name_of("labels"), std::string("label")}) {
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

GraphData to_graph_data(NodeData data) {
  GraphData graph;
  graph.name = std::move(data.name);
  NodeTypeData& nodes = graph.node_types.emplace_back();
  const auto count = static_cast<Index>(data.original_ids.size());
  nodes.book = std::move(data.book);
  nodes.original_ids = std::move(data.original_ids);
  nodes.ids_are_original = data.ids_are_original;
  nodes.data["features"] =
      as_column(npy_real, {data.features.row_size()}, std::span<const real>(data.features.values()), count);
  data.features = {};
  nodes.data["labels"] = as_column(NpyType::int64, {}, std::span<const std::int64_t>(data.labels), count);
  for (const auto& [name, mask] : {std::pair{"train_mask", &data.train_mask},
                                   {"val_mask", &data.val_mask},
                                   {"test_mask", &data.test_mask}})
    nodes.data[name] = as_column(NpyType::boolean, {}, std::span<const std::uint8_t>(*mask), count);
  EdgeTypeData& edges = graph.edge_types.emplace_back();
  edges.num_edges = data.num_edges;
  edges.edges = std::move(data.edges);
  if (!edges.edges.weight.empty())
    edges.data["weight"] =
        as_column(npy_real, {}, std::span<const real>(edges.edges.weight), edges.edges.size());
  edges.edges.weight = {};
  return graph;
}

void require_training_labels(const Communicator& comm, const NodeData& data, const std::string& name) {
  const std::string& place = name.empty() ? data.name : name;
  comm.agree([&] {
    const MaskCounts training = count_mask(data, comm, data.train_mask);
    const Index labelled = comm.all_reduce(std::ranges::count_if(data.labels, [](auto y) { return y >= 0; }));
    require<InputError>(training.nodes > 0, place,
                        ": no node is a training node, expected a train_mask that ", "selects at least one");
    require<InputError>(labelled > 0, place, ": no node has a label, expected labels (or label) among the ",
                        "data of the nodes, with a class for at least one training node");
    require<InputError>(training.unlabelled < training.nodes, place, ": the mask selects ", training.nodes,
                        " training nodes, of which ", "none has a label, expected one at least");
  });
}
}}  // namespace sar
