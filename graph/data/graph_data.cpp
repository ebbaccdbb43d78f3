#include <sar/core/error.hpp>
#include <sar/graph/data/distribute.hpp>
#include <sar/graph/data/edge_columns.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/node_columns.hpp>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace sar::inline SAR_PRECISION {
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

/// The edges of this rank before they are transformed, by id.
class KnownEdges {
 public:
  explicit KnownEdges(Array<Index> ids) : ids_(std::move(ids)), order_(ids_.size()) {
    std::iota(order_.begin(), order_.end(), Index{0});
    std::ranges::sort(order_, {}, [&](Index row) { return ids_[row]; });
  }

  /// One more than the largest id. Collective.
  [[nodiscard]] Index end_id(const Communicator& comm) const {
    return comm.all_reduce(order_.empty() ? 0 : ids_[order_.back()] + 1, ReduceOp::max);
  }
  [[nodiscard]] Array<Index> rows_of(std::span<const Index> ids) const {
    Array<Index> rows;
    for (const Index id : ids)
      rows.push_back(*std::ranges::lower_bound(order_, id, {}, [&](Index row) { return ids_[row]; }));
    return rows;
  }

 private:
  Array<Index> ids_, order_;
};

}  // namespace

const NodeTypeData& GraphData::node_type(const std::string& type) const {
  std::string names;
  for (const NodeTypeData& nodes : node_types) {
    if (nodes.name == type) return nodes;
    names += (names.empty() ? "" : ", ") + nodes.name;
  }
  throw InputError(concat(name, ": there is no node type ", type, ", expected one of ", names));
}

const EdgeTypeData& GraphData::edge_type(const std::string& type) const {
  std::string names;
  const EdgeTypeData* found = nullptr;
  for (const EdgeTypeData& edges : edge_types) {
    if (edges.canonical_name() == type) return edges;
    names += (names.empty() ? "" : ", ") + edges.canonical_name();
    if (edges.name != type) continue;
    require<InputError>(found == nullptr, name, ": several edge types are named ", type,
                        ", expected a name such as ", edges.canonical_name());
    found = &edges;
  }
  require<InputError>(found != nullptr, name, ": there is no edge type ", type, ", expected one of ", names);
  return *found;
}

NodeData to_node_data(const Communicator& comm, GraphData graph, const DatasetOptions& options,
                      EdgeData* edges_of_task) {
  return comm.agree([&] {
    require<InputError>(graph.is_homogeneous(), graph.name, ": the graph has ", graph.node_types.size(),
                        " types of nodes and ", graph.edge_types.size(),
                        " types of edges, expected one of each");
    NodeTypeData& nodes = graph.node_types[0];
    EdgeTypeData& edges = graph.edge_types[0];
    require_nodes_for_ranks(graph.name, nodes.book.num_nodes(), comm.size());
    NodeData data;
    data.name = graph.name;
    data.book = nodes.book;
    data.original_ids = std::move(nodes.original_ids);
    data.ids_are_original = nodes.ids_are_original;
    data.edges = std::move(edges.edges);
    if (const std::string weight = weight_field(fields_of(edges.data), options, graph.name); !weight.empty())
      data.edges.weight =
          to_edge_weights(edges.data.at(weight), data.edges.id, concat(graph.name, ": ", weight));
    const KnownEdges known(edges_of_task != nullptr ? data.edges.id : Array<Index>());
    transform_edges(comm, options, data);
    if (edges_of_task != nullptr) {
      const auto read_edges = [&](const std::string& field, std::span<const Index> ids) {
        return edges.data.at(field).take(known.rows_of(ids));
      };
      read_edge_columns({fields_of(edges.data), read_edges}, options, data,
                        std::min(edges.first_added_id, known.end_id(comm)), *edges_of_task);
      edges_of_task->ids_are_original = edges.ids_are_original;
    }
    edges.data.clear();

    const auto read = [&](const std::string& field, Index begin, Index end) {
      return slice_rows(nodes.data.at(field), begin, end);
    };
    const auto place_of = [&](const std::string& field) { return graph.name + ": " + field; };
    read_node_columns(comm, {fields_of(nodes.data), read, place_of}, options, data);
    return data;
  });
}

NodeData node_data_of(const Communicator& comm, const GraphData& graph, const std::string& type,
                      const DatasetOptions& options) {
  return comm.agree([&] {
    const NodeTypeData& nodes = graph.node_type(type);
    DatasetOptions here = options;
    here.fields.clear();
    for (const auto& [what, field] : options.fields) {
      const bool found = std::ranges::any_of(
          graph.node_types, [&](const NodeTypeData& other) { return other.data.contains(field); });
      require<InputError>(found || what.starts_with("edge_") || what == "weight", graph.name,
                          ": no type of nodes has data named ", field, ", expected one, which shall be the ",
                          what);
      if (nodes.data.contains(field)) here.fields[what] = field;
    }
    here.features = options.features && (here.fields.contains("features") ||
                                         nodes.data.contains("features") || nodes.data.contains("feat"));
    NodeData data;
    data.name = graph.is_homogeneous() ? graph.name : graph.name + ": " + type;
    data.book = nodes.book;
    data.original_ids = nodes.original_ids;
    data.ids_are_original = nodes.ids_are_original;
    const auto read = [&](const std::string& field, Index begin, Index end) {
      return slice_rows(nodes.data.at(field), begin, end);
    };
    const auto place_of = [&](const std::string& field) { return data.name + ": " + field; };
    read_node_columns(comm, {fields_of(nodes.data), read, place_of}, here, data);
    return data;
  });
}

NodeData category_data(const Communicator& comm, const GraphData& graph, const std::string& category,
                       const DatasetOptions& options, bool for_training) {
  return comm.agree([&] {
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

void require_training_labels(const Communicator& comm, const NodeData& data) {
  require_training_labels(comm, data, data.name);
}

}  // namespace sar
