// SPDX-License-Identifier: MIT
#include "train_data.hpp"

#include "formats/describe_source.hpp"
#include "formats/open_source.hpp"
#include "formats/rows/edge_means.hpp"
#include "program.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace sar::tools {
namespace {

/// Says which options give the features that a graph file lacks. Collective.
void require_features(const TrainOptions& o, const GraphSource& source) {
  const std::vector<NodeTypeData>& types = source.types().node_types;
  if (!o.data.features || o.dataset.empty() || types.size() != 1 || o.data.fields.contains("features"))
    return;
  const bool there = std::ranges::any_of(types[0].unread, [](const DataField& field) {
    return field.name == "features" || field.name == "feat";
  });
  require<InputError>(
      there, source.name(), ": the data of the nodes are ",
      types[0].unread.empty() ? "none" : joined(types[0].unread, &DataField::name),
      ", expected features (or feat) among them, or --node-table, --node-features, --node-data "
      "features=FILE.npy, --edge-means for means of data of the edges, or --embedding for learnable rows");
}

NodeData load(const Communicator& comm, TrainOptions& o) {
  if (const std::unique_ptr<GraphSource> source = open_unpartitioned(comm, o)) {
    require_features(o, *source);
    if (!o.predict.empty()) {
      source->write_node_keys(o.predict);
      if (source->has_node_keys()) o.node_names = o.predict + "/node_keys.txt";
    }
    NodeData data = load_dataset(*source, o.data);
    if (!o.edge_means.empty())
      data.features = formats::edge_means(comm, o.edge_means, "--edge-means", *source, data);
    return data;
  }
  std::error_code error;
  const std::string names = o.found.path + "/node_keys.txt";
  if (comm.rank() == 0 && std::filesystem::is_regular_file(names, error)) o.node_names = names;
  o.node_names = comm.broadcast(o.node_names, 0);
  GraphData graph = load_partitioned(comm, o);
  if (o.edge_means.empty()) return to_node_data(comm, std::move(graph), o.data);
  require_one_type(graph.name, graph.node_types.size(), graph.edge_types.size());
  require<InputError>(
      !o.data.add_reverse_edges && !o.data.drop_duplicates, graph.name,
      ": the graph is partitioned, expected --add-reverse-edges and --drop-duplicates when it ",
      "is partitioned, for --edge-means");
  const Tensor features = formats::edge_means(comm, o.edge_means, "--edge-means", graph);
  NodeData data = to_node_data(comm, std::move(graph), o.data);
  data.features = features;
  return data;
}

std::unique_ptr<GraphSource> built_in_source(const Communicator& comm, const TrainOptions& o) {
  if (o.graph == BuiltInGraph::karate) return karate_source(comm);
  const auto nodes = static_cast<double>(o.sbm.nodes) / comm.size();
  const double node_bytes = static_cast<double>(sizeof(real)) * static_cast<double>(o.sbm.features);
  require_memory(comm, nodes * (node_bytes + 24 * o.sbm.degree),
                 concat("the graph of --nodes ", o.sbm.nodes, ", --degree ", o.sbm.degree, " and --features ",
                        o.sbm.features));
  return sbm_source(comm, o.sbm);
}

/// The names and the masks of the splits.
std::array<std::pair<const char*, const Array<std::uint8_t>*>, 3> masks_of(const NodeData& data) {
  return {{{"train_mask", &data.train_mask}, {"val_mask", &data.val_mask}, {"test_mask", &data.test_mask}}};
}

/// Refuses labels so large that the last layer would not fit in memory. Collective.
void require_plausible_labels(const Communicator& comm, const NodeData& data, const std::string& place) {
  comm.agree([&] {
    const Index items = data.book.num_nodes();
    for (std::size_t i = 0; i < data.labels.size(); ++i)
      require<InputError>(data.labels[i] < items, place, ": the label of ", data.item, " ",
                          data.original_ids[i], " is ", data.labels[i], ", and there are ", items, " ",
                          data.item, "s, expected fewer classes than ", data.item, "s, or --num-classes ",
                          "(--loss mse or mae for values)");
  });
}

/// Without labels, --num-classes says how many columns there are.
void set_num_columns(const TrainOptions& o, NodeData& data) {
  if (!data.targets.defined() && o.num_classes > 0)
    data.targets =
        Tensor::full({std::ssize(data.labels), o.num_classes}, std::numeric_limits<real>::quiet_NaN());
  require<InputError>(data.targets.defined(), data.name, ": no ", data.item,
                      " has a label, expected --num-classes, the number of columns of the labels");
  require<InputError>(o.num_classes == 0 || o.num_classes == data.targets.row_size(), data.name,
                      ": the labels have ", data.targets.row_size(),
                      " columns, expected --num-classes of that, not ", o.num_classes);
}

/// Collective.
void set_num_classes(const Communicator& comm, const TrainOptions& o, NodeData& data) {
  if (o.num_classes == 0) require_plausible_labels(comm, data, o.dataset.empty() ? data.name : o.dataset);
  require<InputError>(o.num_classes == 0 || o.num_classes >= data.num_classes, data.name,
                      ": the labels have ", data.num_classes,
                      " classes, expected --num-classes of at least that, not ", o.num_classes);
  if (o.num_classes > 0) data.num_classes = o.num_classes;
  require<InputError>(data.num_classes > 0, data.name, ": no ", data.item,
                      " has a label, expected --num-classes");
  const std::size_t weights = o.task.class_weights.size();
  require<InputError>(weights == 0 || static_cast<Index>(weights) == data.num_classes, data.name,
                      ": there are ", data.num_classes, " classes, expected as many --class-weights, not ",
                      weights);
  if (o.epochs == 0) return;
  const bool counts = has_class_weight(o.task.class_weights, data.labels, data.train_mask);
  require<InputError>(comm.all_reduce(counts ? 1 : 0, ReduceOp::max) == 1, data.name, ": no training ",
                      data.item,
                      " has a label of a class whose weight is above 0, expected one in "
                      "--class-weights");
}

}  // namespace

void warn_of_ids(const Communicator& comm, const TrainOptions& o, const NodeData& data) {
  const auto warn = [&](const char* of, const char* file, const char* expected) {
    const std::string place = concat(": --predict writes rows in the order of the partition, to ", o.predict,
                                     "/", file, ".partition_order.npy, ...");
    say(comm, "WARNING: ", data.name, " does not say the original ids of its ", of,
        o.predict.empty() ? "" : place, ". Expected ", expected);
  };
  if (!data.ids_are_original)
    warn("nodes", has_pairs(o.task.type) ? "embeddings" : "logits",
         "orig_node_ids.npy beside the JSON (what partition_graph returns with return_mapping=True), "
         "orig_nids.dgl in each part, or the node data orig_id");
  if (!data.edge_data.ids_are_original && o.task.type == TaskType::edge)
    warn("edges", o.task.labels == LabelType::values ? "edge_values" : "edge_logits",
         "orig_edge_ids.npy beside the JSON, orig_eids.dgl in each part, or the edge data orig_id");
}

std::array<Index, 3> warn_of_unlabelled(const Communicator& comm, const NodeData& data) {
  std::array<Index, 3> unlabelled{};
  const auto masks = masks_of(data);
  for (std::size_t i = 0; i < unlabelled.size(); ++i) {
    const auto& [name, mask] = masks[i];
    const MaskCounts counts = count_mask(data, comm, *mask);
    unlabelled[i] = counts.unlabelled;
    if (counts.unlabelled > 0)
      say(comm, data.name, ": ", name, ": ", counts.unlabelled, " of the ", counts.nodes, " ", data.item,
          "s have no label and are left out, such as ", data.item, " ", counts.first_unlabelled);
  }
  return unlabelled;
}

/// Prints how many nodes two masks have in common. Collective.
void warn_of_overlaps(const Communicator& comm, const NodeData& data) {
  const auto masks = masks_of(data);
  for (const auto& [i, j] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
    const auto& [name, first] = masks[static_cast<std::size_t>(i)];
    const auto& [other, second] = masks[static_cast<std::size_t>(j)];
    constexpr Index none = std::numeric_limits<Index>::max();
    Index common = 0, least = none;
    for (std::size_t v = 0; v < first->size(); ++v)
      if ((*first)[v] != 0 && (*second)[v] != 0) {
        ++common;
        least = std::min(least, data.original_ids[v]);
      }
    common = comm.all_reduce(common);
    least = comm.all_reduce(least, ReduceOp::min);
    if (common > 0)
      say(comm, "WARNING: ", data.name, ": ", common, " ", data.item, "s are in ", name, " and ", other,
          ", such as ", data.item, " ", least);
  }
}

void prepare_split(const Communicator& comm, const TrainOptions& o, NodeData& data) {
  const Index splits = data.splits.count;
  if (o.draw_split)
    draw_split(comm, data, *o.draw_split);
  else if (o.run.split != data.splits.chosen)
    comm.agree([&] { choose_split(data, o.run.split); });
  const Index counts[] = {count_mask(data, comm, data.train_mask).nodes,
                          count_mask(data, comm, data.val_mask).nodes,
                          count_mask(data, comm, data.test_mask).nodes};
  if (o.draw_split || splits > 1) {
    const std::string which = o.draw_split ? concat("split drawn with seed ", o.draw_split->seed, ": ")
                                           : concat("split ", data.splits.chosen, " of ", splits,
                                                    " (--split 0 to ", splits - 1, "): ");
    const Index unlabelled =
        comm.all_reduce(Index{std::ranges::count_if(data.labels, [](auto label) { return label < 0; })});
    say(comm, data.name, ": ", which, counts[0], " training, ", counts[1], " validation and ", counts[2],
        " test ", data.item, "s",
        unlabelled > 0 ? concat("; ", unlabelled, " have no label (-1 or NaN)") : std::string());
  }
  if (o.epochs == 0) return;
  require<InputError>(counts[0] > 0 || o.draw_split, o.dataset.empty() ? data.name : o.dataset,
                      o.task.type == TaskType::graph
                          ? ": there is no split: no graph is a training graph, expected split/ with the "
                            "numbers of graphs, or --split-graphs 0.8,0.1,0.1, which draws one"
                          : ": there is no split: no node is a training node, expected train_mask, val_mask "
                            "and test_mask, or --split-nodes 0.6,0.2,0.2 (or 20/class,500,1000), which draws "
                            "one");
  require_training_labels(comm, data);
  warn_of_overlaps(comm, data);
}

NodeData load_data(const Communicator& comm, TrainOptions& o) {
  NodeData data = load(comm, o);
  warn_of_ids(comm, o, data);
  if (has_pairs(o.task.type)) return data;
  prepare_split(comm, o, data);
  set_outputs(comm, o, data);
  return data;
}

std::unique_ptr<GraphSource> open_unpartitioned(const Communicator& comm, const TrainOptions& o) {
  if (o.dataset.empty()) return built_in_source(comm, o);
  if (comm.all_reduce(o.found.is_partitioned() ? 0 : 1, ReduceOp::max) == 0) return nullptr;
  comm.agree([&] {
    std::error_code error;
    require<InputError>(std::filesystem::exists(o.dataset, error), o.dataset,
                        ": there is no such file or directory, expected a dataset directory, a partition "
                        "directory, a DGL partition, an OGB folder, an edge list or a Matrix Market file");
  });
  std::unique_ptr<GraphSource> source = formats::open_source(comm, o.found, o.source);
  print_notes(*source, concat(o.dataset, ": ", source->description()));
  return source;
}

void describe_dataset(const Communicator& comm, const TrainOptions& o) {
  const auto source = open_unpartitioned(comm, o);
  require<InputError>(source != nullptr, o.dataset,
                      ": the graph is partitioned, expected what it was made of for --describe");
  const std::vector<std::string> lines = formats::describe_source(*source, o.data.fields);
  for (const std::string& line : lines) say(comm, line);
}

GraphData load_partitioned(const Communicator& comm, const TrainOptions& o, const DatasetOptions& options) {
  GraphData graph = load_graph(comm, o.found, options);
  say(comm, o.dataset, ": ", graph.description);
  return graph;
}

void set_outputs(const Communicator& comm, TrainOptions& o, NodeData& data) {
  comm.agree([&] { resolve_labels(o.task, data.label_type, data.name); });
  if (data.label_type == LabelType::classes)
    set_num_classes(comm, o, data);
  else
    set_num_columns(o, data);
  const Index outputs = data.num_outputs();
  const bool is_binary = outputs == (data.label_type == LabelType::classes ? 2 : 1);
  require<InputError>(
      is_binary || std::ranges::count(o.task.metrics, Metric::f1) == 0, data.name,
      ": --metric f1 is of two classes, and there are ", outputs,
      data.label_type == LabelType::classes ? std::string(" classes") : concat(" labels a ", data.item),
      ", expected f1-micro or f1-macro");
}

}  // namespace sar::tools
