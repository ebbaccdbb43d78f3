// SPDX-License-Identifier: MIT
#include "train_graph.hpp"

#include "train_data.hpp"

#include <sar/core/files/file.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace sar::tools {
namespace {

/// Collective. Generates edge types 0 .. num_rels - 1. For about half of the edges the type is the
/// difference of the classes of the two ends, modulo num_rels; for the others, and for all edges if
/// `labels` [local nodes, 1] is undefined, it is random. Types depend on labels and edge ids only, so they
/// are the same for every number of ranks.
GraphRelations make_relations(const Graph& graph, Index num_rels, const Tensor& labels) {
  const NoTape data_only;
  GraphRelations relations;
  relations.norm = weighted_norm(relation_norm(graph), graph);

  Tensor steps;  // from the class of the source to that of the destination
  if (labels.defined()) steps = graph.apply_edges(fn::v_sub_u(labels, labels)).value();
  const Random draws({.seed = 0x72656c});
  Array<std::uint16_t> types;
  for (Index e = 0; e < graph.num_edges(); ++e) {
    const auto id = static_cast<std::uint64_t>(graph.edge_ids()[e]);
    const bool tells = steps.defined() && draws.uniform(id, 0) < 0.5;
    const Index step = tells ? static_cast<Index>(steps.row(e)[0])
                             : static_cast<Index>(draws.uniform(id, 1) * static_cast<double>(num_rels));
    types.push_back(static_cast<std::uint16_t>((step % num_rels + num_rels) % num_rels));
  }
  relations.types = EdgeTypes(std::move(types));
  return relations;
}

/// `of_category` in the rows of its nodes, `other` in all others.
template <class T>
void spread(const Array<T>& of_category, Index first_row, Index num_rows, T other, Array<T>& all) {
  all.assign(static_cast<std::size_t>(num_rows), other);
  std::ranges::copy(of_category, all.begin() + first_row);
}

/// The homogeneous form's nodes without labels.
NodeData form_data(const HomogeneousForm& form, const GraphData& loaded) {
  NodeData data;
  data.name = loaded.name;
  data.book = book_of_form(loaded);
  data.original_ids = form.graph.dst_ids();
  data.ids_are_original = std::ranges::all_of(loaded.node_types, &NodeTypeData::ids_are_original);
  data.num_edges = form.graph.num_global_edges();
  return data;
}

/// Adds the labels of the category to those of all `rows` nodes.
void add_labels(const NodeData& category, std::span<const TypeRows> types, Index rows, NodeData& data) {
  const Index first = std::ranges::find_if(types, &TypeRows::is_category)->first_row;
  data.name = category.name;
  data.ids_are_original = category.ids_are_original;
  data.num_classes = category.num_classes;
  data.label_type = category.label_type;
  spread<std::int64_t>(category.labels, first, rows, -1, data.labels);
  if (category.targets.defined()) {
    const Index width = category.targets.row_size();
    data.targets = Tensor::full({rows, width}, std::numeric_limits<real>::quiet_NaN());
    std::ranges::copy(category.targets.values(), data.targets.data() + first * width);
  }
  spread<std::uint8_t>(category.train_mask, first, rows, 0, data.train_mask);
  spread<std::uint8_t>(category.val_mask, first, rows, 0, data.val_mask);
  spread<std::uint8_t>(category.test_mask, first, rows, 0, data.test_mask);
}

/// "3 node types (author: 60, paper: 80), 2 edge types (author:writes:paper: 500, ...)"
std::string describe_types(const Graph& graph) {
  const auto nodes = [&](const std::string& type) {
    return concat(type, ": ", graph.num_global_nodes(type));
  };
  const auto edges = [&](const EdgeType& type) {
    return concat(type.canonical_name(), ": ", graph[type].num_global_edges());
  };
  return concat(graph.node_types().size(), " node types (", joined(graph.node_types(), nodes), "), ",
                graph.edge_types().size(), " edge types (", joined(graph.edge_types(), edges), ")");
}

/// `predicted`: the node types whose rows the task reads.
void require_relations(const std::string& name, const Graph& graph, const TrainOptions& o,
                       const std::vector<std::string>& predicted) {
  if (!model_type(o.model.type).by_relation) return;
  for (const std::string& node_type : predicted) {
    const bool reached = std::ranges::any_of(
        graph.edge_types(), [&](const EdgeType& type) { return type.destination == node_type; });
    require<InputError>(
        reached, name, ": no edge type ends at ", node_type,
        o.relation.empty() ? ", whose classes --model " : ", whose rows --model ", o.model.type,
        o.relation.empty() ? " predicts" : " computes from the in-edges, expected --add-reverse-edges");
  }
}

/// Makes the weights of the edges what the model reads, or refuses them. Local.
void prepare_weights(const TrainOptions& o, GraphData& graph) {
  const std::vector<std::string> weights = take_edge_weights(graph, o.data);
  const std::string layers = layers_without_weights(o.model);
  if (layers.empty()) return;
  for (std::size_t k = 0; k < weights.size(); ++k)
    require<InputError>(weights[k].empty(), graph.name, ": the edges of ",
                        graph.edge_types[k].canonical_name(), " have weights (", weights[k],
                        "), which --model ", o.model.type, " (", layers,
                        ") does not read, expected --model rgcn, hetero-sage or hetero-gat, or "
                        "--ignore-edge-weights");
}

/// Refuses weights that nothing reads, on a graph with one type of edges. Local.
void require_weights_read(const TrainOptions& o, const std::string& name, const Graph& graph) {
  const std::string layers = layers_without_weights(o.model);
  require<InputError>(layers.empty() || o.sample.by_weight || !graph.edge_weight().defined(), name,
                      ": the edges have weights, which --model ", o.model.type, " (", layers,
                      ") does not read, expected --model ", model_types_where([](const ModelType& type) {
                        return type.is_stack() && !type.has_relations && type.weightless.empty();
                      }),
                      ", --sample-by-weight or --ignore-edge-weights");
}

/// Learnable rows are no parameters.
void require_no_learnable_rows(const NodeInput& input, const TrainOptions& o) {
  if (!input.has_learnable_rows()) return;
  require<InputError>(
      o.keep == KeptWeights::last, o.dataset,
      ": some node types have no features but learnable rows, of which --keep best has no copy");
  require<InputError>(
      o.clip_norm <= 0, o.dataset,
      ": some node types have no features but learnable rows, which --clip-norm does not clip");
}

GraphData load_all_types(const Communicator& comm, const TrainOptions& o) {
  if (const std::unique_ptr<GraphSource> source = open_unpartitioned(comm, o))
    return load_graph(*source, o.data);
  return load_partitioned(comm, o, o.data);
}

/// Prepares the edges of the tasks link and edge, after a check of the memory and of the files of
/// predictions. Collective.
EdgeTask prepare_edges(const Communicator& comm, const TrainOptions& o, NodeData& data) {
  const TaskType task = o.task.type;
  EdgeTask edges;
  if (has_pairs(task)) edges = make_edge_task(comm, o, data);
  if (task == TaskType::edge && !o.predict.empty()) require_edge_ids(comm, data, edges.all.edges.id);
  require_memory_of_model(comm, o, o.model, data, o.embedding > 0 ? o.embedding : data.num_features(),
                          has_pairs(task) ? edges.num_classes : data.num_outputs(), edges.num_types);
  require_memory_of_pairs(comm, o, edges);
  return edges;
}

/// The clusters of this rank's nodes: parts of the partition directory, or made here. Collective.
Array<std::int32_t> make_clusters(const Communicator& comm, const TrainOptions& o, const NodeData& data) {
  if (o.sample.clusters != SampleOptions::parts)
    return cluster_nodes(comm, data.book, data.original_ids, data.edges,
                         {.clusters = o.sample.clusters, .method = o.sample.cluster_method, .seed = o.seed});
  return comm.agree([&] {
    const PartitionDescription description = share_partition_description(comm, o.found.path);
    const PartitionBook& parts = description.graph.node_types.at(0).book;
    Array<std::int32_t> clusters;
    for (Index v = data.book.begin(comm.rank()); v < data.book.end(comm.rank()); ++v)
      clusters.push_back(static_cast<std::int32_t>(parts.owner(v)));
    return clusters;
  });
}

/// A dataset with one type of nodes, or a built-in graph. Collective.
TrainingGraph load_untyped_graph(const Communicator& comm, TrainOptions& o, Heartbeat& heartbeat) {
  NodeData data = load_data(comm, o);
  EdgeTask edges = prepare_edges(comm, o, data);
  Array<std::int32_t> clusters;
  if (o.sample.clusters != 0 && o.epochs > 0) {
    heartbeat.phase("making clusters");
    clusters = make_clusters(comm, o, data);
  }
  heartbeat.phase("building the graph and the model");
  Variable features;
  if (o.bfloat16_features && data.features.defined()) {  // before the graph takes memory
    features = bfloat16_features(comm, data.input(), data.name);
    data.features = {};
  }
  Graph graph = construct_full_graph(comm, data, o.graph_options);
  comm.agree([&] { require_weights_read(o, data.name, graph); });
  std::vector<GraphRelations> relations = generate_relations(graph, data, o);
  const std::array<Index, 3> unlabelled =
      has_pairs(o.task.type)
          ? std::array{edges.train.unlabelled, edges.valid.unlabelled, edges.test.unlabelled}
          : warn_of_unlabelled(comm, data);
  TrainingGraph loaded{.data = std::move(data),
                       .edges = std::move(edges),
                       .graph = std::move(graph),
                       .relations = std::move(relations),
                       .features = std::move(features),
                       .clusters = std::move(clusters),
                       .model = o.model,
                       .unlabelled = unlabelled};
  loaded.start_run(o);
  return loaded;
}

/// Collective. The category's labels; of a task of links, nothing.
NodeData labels_of_category(const Communicator& comm, TrainOptions& o, const GraphData& loaded) {
  if (o.category.empty()) return {};
  NodeData category = category_data(comm, loaded, o.category, o.data, /*for_training=*/false);
  prepare_split(comm, o, category);
  set_outputs(comm, o, category);
  return category;
}

/// A typed graph in its homogeneous form; rgcn averages messages by edge type. Collective.
TrainingGraph load_typed_graph(const Communicator& comm, TrainOptions& o) {
  GraphData loaded = load_all_types(comm, o);
  comm.agree([&] { prepare_weights(o, loaded); });
  NodeData category = labels_of_category(comm, o, loaded);
  EdgeTask task;
  if (!o.relation.empty()) task = make_relation_task(comm, o, loaded);
  DatasetOptions features_only = o.data;  // labels of other types need not be classes
  features_only.labels = false;
  std::vector<TypeRows> types;
  for (NodeTypeData& nodes : loaded.node_types) {
    TypeRows& rows = types.emplace_back(TypeRows{.name = nodes.name,
                                                 .book = nodes.book,
                                                 .original_ids = nodes.original_ids,
                                                 .ids_are_original = nodes.ids_are_original,
                                                 .is_category = nodes.name == o.category});
    const NodeData other =
        rows.is_category ? NodeData() : node_data_of(comm, loaded, nodes.name, features_only);
    const NodeData& data = rows.is_category ? category : other;
    if (data.num_features() > 0)
      rows.features = o.bfloat16_features ? bfloat16_features(comm, data.input(), nodes.name) : data.input();
    nodes.data.clear();
    nodes.sparse.clear();
  }
  for (EdgeTypeData& edges : loaded.edge_types) edges.data.clear();
  comm.agree(
      [&] { require<InputError>(!loaded.edge_types.empty(), loaded.name, ": there are no edge types"); });
  const Graph graph = construct_hetero_graph(comm, loaded, o.graph_options);
  const HomogeneousForm& form = graph.to_homogeneous();
  std::vector<std::string> read_types{o.category};
  if (!o.relation.empty()) {
    const EdgeType& relation = form.edge_types[static_cast<std::size_t>(task.edge_types[0])];
    read_types = {relation.source, relation.destination};
    task.rows.assign(static_cast<std::size_t>(task.num_types),
                     relation_rows(form)[static_cast<std::size_t>(task.edge_types[0])]);
  }
  comm.agree([&] { require_relations(loaded.name, graph, o, read_types); });
  for (std::size_t t = 0; t < types.size(); ++t) {
    types[t].first_row = form.first_row[t];
    types[t].end_row = form.first_row[t + 1];
  }
  ModelDescription model = o.model;
  model.num_rels = std::ssize(form.edge_types);
  model.node_types = form.node_types;
  model.edge_types = form.edge_types;
  std::vector<GraphRelations> relations{relations_of(graph, model_type(o.model.type))};
  NodeData data = form_data(form, loaded);
  std::array<Index, 3> unlabelled{};
  if (!o.category.empty()) {
    warn_of_ids(comm, o, category);
    unlabelled = warn_of_unlabelled(comm, category);
    add_labels(category, types, form.graph.num_nodes(), data);
    category.features = {};
    category.sparse_features = {};
  } else {
    warn_of_ids(comm, o, data);
    require_memory_of_pairs(comm, o, task);
  }
  TrainingGraph form_graph{.data = std::move(data),
                           .edges = std::move(task),
                           .graph = form.graph,
                           .relations = std::move(relations),
                           .node_types = std::move(types),
                           .model = std::move(model),
                           .types = describe_types(graph),
                           .unlabelled = unlabelled};
  if (!o.category.empty()) form_graph.category = std::move(category);
  form_graph.start_run(o);
  comm.agree([&] { require_no_learnable_rows(*form_graph.input, o); });
  return form_graph;
}

}  // namespace

void TrainingGraph::start_run(const TrainOptions& o) {
  gen = Generator(o.seed);
  input.reset();
  input = node_types.empty() ? std::make_unique<NodeInput>(graph.comm(), o, data, features)
                             : std::make_unique<NodeInput>(graph.comm(), o, node_types, gen);
}

void TrainingGraph::take_split(const TrainOptions& o) {
  prepare_split(graph.comm(), o, category ? *category : data);
  if (category) add_labels(*category, node_types, graph.num_nodes(), data);
  if (o.task.type == TaskType::node || o.task.type == TaskType::graph)
    unlabelled = warn_of_unlabelled(graph.comm(), labelled());
}

std::vector<GraphRelations> generate_relations(const Graph& graph, const NodeData& data,
                                               const TrainOptions& o) {
  if (!model_type(o.model.type).has_relations) return {};
  Tensor labels;
  if (o.dataset.empty()) {
    labels = Tensor({graph.num_nodes(), 1});
    std::copy(data.labels.begin(), data.labels.end(), labels.data());
  }
  return {make_relations(graph, o.model.num_rels, labels)};
}

TrainingGraph load_training_graph(const Communicator& comm, TrainOptions& o, Heartbeat& heartbeat) {
  heartbeat.phase("reading the graph");
  if (!o.is_typed()) return load_untyped_graph(comm, o, heartbeat);
  TrainingGraph typed = load_typed_graph(comm, o);
  require_memory_of_model(comm, o, typed.model, typed.data, typed.input->width(), typed.data.num_outputs(),
                          typed.edges.num_types);
  return typed;
}

TrainingGraph train_on_samples(const Communicator& comm, const TrainOptions& o, NodeData data,
                               SampleTask samples) {
  Graph graph(comm, data.book, data.book, EdgeList{}, /*is_block=*/true, o.graph_options, data.original_ids,
              data.original_ids);
  TrainingGraph loaded{
      .data = std::move(data), .graph = std::move(graph), .model = o.model, .samples = std::move(samples)};
  loaded.start_run(o);
  return loaded;
}

}  // namespace sar::tools
