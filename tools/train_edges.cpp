#include "train_edges.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

namespace sar::tools {
namespace {

void append(EdgeList& to, const EdgeList& from, Index e) {
  to.src.push_back(from.src[e]);
  to.dst.push_back(from.dst[e]);
  to.id.push_back(from.id[e]);
  if (!from.weight.empty()) to.weight.push_back(from.weight[e]);
}

/// Parts of the edges, drawn for each pair of nodes. Collective.
Array<EdgePart> draw_parts(const Communicator& comm, const TrainOptions& o, NodeData& data,
                           const EdgeList& edges) {
  EdgeList kept = std::exchange(data.edges, edges);
  const EdgeSplit split =
      split_edges(comm, data, {.valid = o.task.valid, .test = o.task.test, .seed = o.seed});
  data.edges = std::move(kept);
  std::unordered_map<Index, EdgePart> parts;
  for (const Index id : split.valid.id) parts[id] = EdgePart::valid;
  for (const Index id : split.test.id) parts[id] = EdgePart::test;
  Array<EdgePart> drawn;
  for (const Index id : edges.id) {
    const auto found = parts.find(id);
    drawn.push_back(found == parts.end() ? EdgePart::train : found->second);
  }
  return drawn;
}

TaskEdges& part_of(EdgeTask& task, EdgePart part) {
  return part == EdgePart::train ? task.train : part == EdgePart::valid ? task.valid : task.test;
}

void append(TaskEdges& to, const EdgeData& from, Index e) {
  to.edges.src.push_back(from.edges.src[e]);
  to.edges.dst.push_back(from.edges.dst[e]);
  to.edges.id.push_back(from.edges.id[e]);
  if (!from.types.empty()) to.types.push_back(from.types[e]);
  if (!from.labels.empty()) to.labels.push_back(from.labels[e]);
}

/// Messages pass neither along held-out edges nor along those in the other direction. Collective.
void take_out(const Communicator& comm, const EdgeTask& task, NodeData& data) {
  EdgeList held_out;
  for (const TaskEdges* part : {&task.valid, &task.test}) {
    held_out.src.insert(held_out.src.end(), part->edges.src.begin(), part->edges.src.end());
    held_out.dst.insert(held_out.dst.end(), part->edges.dst.begin(), part->edges.dst.end());
  }
  held_out.id.resize(held_out.src.size());
  const EdgeSet set(comm, data.book, held_out);
  const Array<std::uint8_t> same = set.contains(data.edges.src, data.edges.dst);
  const Array<std::uint8_t> reverse = set.contains(data.edges.dst, data.edges.src);
  EdgeList kept;
  for (Index e = 0; e < data.edges.size(); ++e)
    if (same[e] == 0 && reverse[e] == 0) append(kept, data.edges, e);
  data.edges = std::move(kept);
  data.num_edges = comm.all_reduce(data.edges.size());
}

/// Pairs as the dataset lists them; messages pass along the edges of the graph.
void take_lists(EdgeTask& task, std::vector<ListedPairs> lists) {
  for (std::size_t i = 0; i < lists.size(); ++i) {
    TaskEdges& part = part_of(task, static_cast<EdgePart>(i));
    part.edges = {std::move(lists[i].edges.src), std::move(lists[i].edges.dst), std::move(lists[i].edges.id)};
    part.negatives = std::move(lists[i].negatives);
    part.negatives_per_edge = lists[i].negatives_per_edge;
  }
}

/// A self loop is no link: its ends are equal, whatever the network is.
bool counts(const TrainOptions& o, const EdgeData& edges, Index e) {
  return o.task.type == TaskType::link ? edges.edges.src[e] != edges.edges.dst[e]
                                       : !std::isnan(edges.labels[e]);
}

/// Labels as classes: a negative one is none. Collective.
Index check_classes(const Communicator& comm, const TrainOptions& o, const NodeData& data, EdgeData& edges) {
  Index classes = 0;
  comm.agree([&] {
    for (Index e = 0; e < edges.edges.size(); ++e) {
      double& label = edges.labels[e];
      const bool is_class = label == std::floor(label) && -1 <= label && label < 0x1p31;
      require<InputError>(std::isnan(label) || is_class, data.name, ": the label of edge ", edges.edges.id[e],
                          " is ", label,
                          ", expected a class from 0 or -1 for an unlabelled edge "
                          "(--edge-labels values for regression)");
      if (label == -1) label = std::numeric_limits<double>::quiet_NaN();
      if (label >= 0) classes = std::max(classes, static_cast<Index>(label) + 1);
    }
  });
  classes = comm.all_reduce(classes, ReduceOp::max);
  require<InputError>(o.num_classes == 0 || o.num_classes >= classes, data.name,
                      ": the labels of edges have ", classes,
                      " classes, expected --num-classes of at least that, not ", o.num_classes);
  const Index all = comm.all_reduce(edges.edges.size());
  require<InputError>(o.num_classes > 0 || classes <= all, data.name, ": the largest label of an edge is ",
                      classes - 1, ", and there are ", all,
                      " edges, expected fewer classes than edges, or --num-classes");
  return std::max(o.num_classes, classes);
}

/// Collective.
void require_edges(const Communicator& comm, const TrainOptions& o, const NodeData& data,
                   const EdgeData& edges) {
  const std::string task = "--task " + name_of(o.task.type);
  require<InputError>(data.num_edges > 0, data.name, ": the graph has no edges, expected at least one for ",
                      task);
  require<InputError>(o.task.type != TaskType::edge || edges.lists.empty(), data.name,
                      ": the split lists pairs of nodes, expected edge data split, or --task link");
  const bool labelled = comm.all_reduce(edges.labels.empty() ? 0 : 1, ReduceOp::max) == 1;
  require<InputError>(o.task.type != TaskType::edge || labelled, data.name,
                      ": the edges have no labels, expected edge data labels (or label) for ", task);
}

/// Collective.
void require_parts(const Communicator& comm, const TrainOptions& o, const NodeData& data,
                   const EdgeTask& task) {
  Index sizes[] = {task.train.edges.size(), task.valid.edges.size(), task.test.edges.size()};
  comm.all_reduce(std::span<Index>(sizes));
  require<InputError>(sizes[0] > 0 || o.epochs == 0, data.name, ": no edge is left for training, ", sizes[1],
                      " are for validation and ", sizes[2],
                      " for test, expected a split with training edges for --task ", name_of(o.task.type));
  for (const TaskEdges* part : {&task.valid, &task.test}) {
    const Index given = comm.all_reduce(part->negatives.size());
    require<InputError>(
        o.task.metric != LinkMetric::mrr || given == 0 || part->negatives_per_edge > 0, data.name,
        ": the negatives of the split belong to no edge, expected --metric auc or hits, not mrr");
  }
}

}  // namespace

EdgeTask make_edge_task(const Communicator& comm, const TrainOptions& o, NodeData& data, EdgeData edges) {
  require_edges(comm, o, data, edges);
  EdgeTask task;
  const bool link = o.task.type == TaskType::link;
  if (link) task.of_graph = std::make_shared<EdgeSet>(comm, data.book, data.edges);
  if (!link)
    task.num_classes = o.task.labels == EdgeLabels::classes ? check_classes(comm, o, data, edges) : 1;
  for (const Index type : edges.types) task.num_types = std::max(task.num_types, type + 1);
  task.num_types = comm.all_reduce(task.num_types, ReduceOp::max);
  if (!edges.lists.empty()) {
    take_lists(task, std::move(edges.lists));
  } else {
    if (comm.all_reduce(edges.parts.empty() ? 0 : 1, ReduceOp::max) == 0)
      edges.parts = draw_parts(comm, o, data, edges.edges);
    for (Index e = 0; e < edges.edges.size(); ++e) {
      if (!link) append(task.all, edges, e);
      if (edges.parts[e] != EdgePart::none && counts(o, edges, e))
        append(part_of(task, edges.parts[e]), edges, e);
    }
    if (link) take_out(comm, task, data);
  }
  if (link) task.of_messages = std::make_shared<EdgeSet>(comm, data.book, data.edges);
  require_parts(comm, o, data, task);
  return task;
}

}  // namespace sar::tools
