// SPDX-License-Identifier: MIT
#include "train_edges.hpp"

#include "program.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <unordered_map>
#include <utility>

namespace sar::tools {
namespace {

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

/// The edges `known` of the graph, with the owners of their destinations, and the pairs of `parts`, which are
/// on any rank. Collective.
std::shared_ptr<const EdgeSet> known_pairs(const Communicator& comm, const PartitionBook& book,
                                           EdgeList known, std::initializer_list<const TaskEdges*> parts) {
  known.id.clear();
  known.weight.clear();
  struct Pair {
    Index src, dst;
  };
  std::vector<Pair> pairs;
  for (const TaskEdges* part : parts)
    for (Index i = 0; i < part->edges.size(); ++i) pairs.push_back({part->edges.src[i], part->edges.dst[i]});
  std::ranges::sort(pairs, {}, &Pair::dst);  // and so by owner
  std::vector<Index> counts(static_cast<std::size_t>(comm.size()), 0);
  for (const Pair& pair : pairs) ++counts[static_cast<std::size_t>(book.owner(pair.dst))];
  for (const Pair& pair : comm.all_to_all_v(std::span<const Pair>(pairs), counts).values) {
    known.src.push_back(pair.src);
    known.dst.push_back(pair.dst);
  }
  return std::make_shared<const EdgeSet>(comm, book, known);
}

/// Removes held-out edges, in both directions, from the message edges and from the training edges (the
/// dataset may repeat an edge). Collective.
void take_out(const Communicator& comm, const EdgeTask& task, NodeData& data, EdgeData& edges) {
  const std::shared_ptr<const EdgeSet> held_out = held_out_pairs(comm, data.book, task);
  const auto is_held_out = [&](const EdgeList& of) { return Directions().find(*held_out, of.src, of.dst); };
  const Array<std::uint8_t> held = is_held_out(data.edges), held_of_task = is_held_out(edges.edges);
  for (Index e = 0; e < edges.edges.size(); ++e)
    if (held_of_task[e] != 0 && edges.parts[e] == EdgePart::train) edges.parts[e] = EdgePart::none;
  data.edges = without(data.edges, held);
  data.num_edges = comm.all_reduce(data.edges.size());
}

/// Warns if messages pass along held-out edges, which happens when the dataset lists pairs. Collective.
void warn_of_held_out_edges(const Communicator& comm, const EdgeTask& task, const NodeData& data) {
  const EdgeSet edges(comm, data.book, data.edges);
  Index counts[] = {0, task.valid.edges.size() + task.test.edges.size()};
  for (const TaskEdges* part : {&task.valid, &task.test})
    counts[0] += std::ranges::count(Directions().find(edges, part->src(), part->dst()), 1);
  comm.all_reduce(std::span<Index>(counts));
  if (counts[0] > 0)
    say(comm, "WARNING: ", data.name, ": ", counts[0], " of the ", counts[1],
        " validation and test pairs are edges of the graph, which carry messages");
}

/// Returns the pairs listed by the dataset. Collective.
void take_lists(const Communicator& comm, const NodeData& data, EdgeTask& task,
                std::vector<ListedPairs> lists) {
  for (std::size_t i = 0; i < lists.size(); ++i) {
    TaskEdges& part = part_of(task, static_cast<EdgePart>(i));
    part.edges = {std::move(lists[i].edges.src), std::move(lists[i].edges.dst), std::move(lists[i].edges.id)};
    part.negatives = std::move(lists[i].negatives);
    part.negatives_per_edge = lists[i].negatives_per_edge;
  }
  warn_of_held_out_edges(comm, task, data);
}

/// Returns whether edge e belongs to the task: links except self loops; edges that have a label.
bool counts(const TrainOptions& o, const EdgeData& edges, Index e) {
  if (o.task.type == TaskType::link) return edges.edges.src[e] != edges.edges.dst[e];
  return !edges.labels.empty() && !std::isnan(edges.labels[e]);
}

/// Returns the splits of the dataset's edges, given or drawn. Collective.
void divide(const Communicator& comm, const TrainOptions& o, NodeData& data, EdgeData& edges,
            EdgeTask& task) {
  if (comm.all_reduce(edges.parts.empty() ? 0 : 1, ReduceOp::max) == 0)
    edges.parts = draw_parts(comm, o, data, edges.edges);
  const auto take = [&](bool training) {
    for (Index e = 0; e < edges.edges.size(); ++e)
      if (const EdgePart part = edges.parts[e];
          part != EdgePart::none && (part == EdgePart::train) == training) {
        if (counts(o, edges, e))
          append(part_of(task, part), edges, e);
        else if (o.task.type == TaskType::edge)
          ++part_of(task, part).unlabelled;
      }
  };
  take(false);
  if (o.task.type == TaskType::link) take_out(comm, task, data, edges);
  take(true);
  for (TaskEdges* part : {&task.train, &task.valid, &task.test})
    part->unlabelled = comm.all_reduce(part->unlabelled);
}

/// Checks that labels are classes (negative: no label) and returns the number of classes. Collective.
Index check_classes(const Communicator& comm, const TrainOptions& o, const NodeData& data, EdgeData& edges) {
  Index classes = 0, least = std::numeric_limits<Index>::max(), has_minus_one = 0;
  comm.agree([&] {
    for (Index e = 0; e < std::ssize(edges.labels); ++e) {
      double& label = edges.labels[e];
      const bool is_class = label == std::floor(label) && -1 <= label && label < 0x1p31;
      require<InputError>(std::isnan(label) || is_class, data.name, ": the label of edge ", edges.edges.id[e],
                          " is ", label,
                          ", expected a class from 0 or -1 for an unlabelled edge "
                          "(--edge-labels values for regression)");
      if (label == -1) {
        label = std::numeric_limits<double>::quiet_NaN();
        has_minus_one = 1;
      }
      if (std::isnan(label)) continue;
      classes = std::max(classes, static_cast<Index>(label) + 1);
      least = std::min(least, static_cast<Index>(label));
    }
  });
  classes = comm.all_reduce(classes, ReduceOp::max);
  least = comm.all_reduce(least, ReduceOp::min);
  require<InputError>(
      o.num_classes > 0 || comm.all_reduce(has_minus_one, ReduceOp::max) == 0 || least + 1 != classes,
      data.name, ": the labels of edges are -1 and ", least,
      ", and -1 is no class, but says that an edge has no label, expected classes from 0, or "
      "--num-classes");
  require<InputError>(o.num_classes == 0 || o.num_classes >= classes, data.name,
                      ": the labels of edges have ", classes,
                      " classes, expected --num-classes of at least that, not ", o.num_classes);
  const Index all = comm.all_reduce(edges.edges.size());
  require<InputError>(o.num_classes > 0 || classes <= all, data.name, ": the largest label of an edge is ",
                      classes - 1, ", and there are ", all,
                      " edges, expected fewer classes than edges, or --num-classes");
  return std::max(o.num_classes, classes);
}

/// Returns the number of edge types; 0 if edges have no types. Collective.
Index check_types(const Communicator& comm, const TrainOptions& o, const NodeData& data,
                  const EdgeData& edges) {
  Index types = 0;
  for (const Index type : edges.types) types = std::max(types, type + 1);
  types = comm.all_reduce(types, ReduceOp::max);
  const Index all = comm.all_reduce(edges.edges.size());
  require<InputError>(o.epochs == 0 || types <= all, data.name, ": the largest type of an edge is ",
                      types - 1, ", and there are ", all,
                      " edges, expected fewer types than edges, numbered from 0");
  return types;
}

/// Collective.
void require_edges(const Communicator& comm, const TrainOptions& o, const NodeData& data,
                   const EdgeData& edges) {
  const std::string task = "--task " + name_of(o.task.type);
  require<InputError>(data.num_edges > 0, data.name, ": the graph has no edges, expected at least one for ",
                      task);
  require<InputError>(o.task.type != TaskType::edge || edges.lists.empty(), data.name,
                      ": the split lists pairs of nodes, expected edge data split, or --task link");
  const bool has_split =
      !edges.lists.empty() || comm.all_reduce(edges.parts.empty() ? 0 : 1, ReduceOp::max) == 1;
  require<InputError>(!has_split || !o.task.has_shares, data.name,
                      ": the edges have a split, expected no --split-edges");
  const bool labelled = comm.all_reduce(edges.labels.empty() ? 0 : 1, ReduceOp::max) == 1;
  if (o.task.type != TaskType::edge || labelled) return;
  require<InputError>(o.epochs == 0, data.name,
                      ": the edges have no labels, expected edge data labels (or label) for ", task,
                      ", or --fields edge_labels=NAME, such as weight for the only column of an edge list");
  require<InputError>(o.num_classes > 0 || o.task.labels == LabelType::values, data.name,
                      ": the edges have no labels, expected --num-classes");
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
        metrics_of(o.task)[0] != Metric::mrr || given == 0 || part->negatives_per_edge > 0, data.name,
        ": the negatives of the split belong to no edge, expected --metric auc or hits, not mrr");
  }
}

/// Collective.
PairCandidates candidates(const Communicator& comm, const NodeData& data, const EdgeTask& task) {
  Array<Index> src, dst;
  for (const TaskEdges* part : {&task.train, &task.valid, &task.test}) {
    src.insert(src.end(), part->src().begin(), part->src().end());
    dst.insert(dst.end(), part->dst().begin(), part->dst().end());
  }
  return candidates_of_edges(comm, data.book, data.original_ids, src, dst);
}

}  // namespace

Array<std::uint8_t> Directions::find(const EdgeSet& set, std::span<const Index> src,
                                     std::span<const Index> dst) const {
  Array<std::uint8_t> found(src.size(), 0);
  const auto add = [&](const Array<std::uint8_t>& some) {
    for (std::size_t e = 0; e < found.size(); ++e) found[e] = found[e] | some[e];
  };
  if (same) add(set.contains(src, dst));
  if (reverse) add(set.contains(dst, src));
  return found;
}

EdgeList without(const EdgeList& edges, const Array<std::uint8_t>& dropped) {
  EdgeList kept;
  for (Index e = 0; e < edges.size(); ++e)
    if (dropped[e] == 0) kept.append(edges, e);
  return kept;
}

EdgeTask make_edge_task(const Communicator& comm, const TrainOptions& o, NodeData& data) {
  EdgeData edges = std::exchange(data.edge_data, {});
  require_edges(comm, o, data, edges);
  EdgeTask task;
  task.ids_are_original = edges.ids_are_original;
  const bool link = o.task.type == TaskType::link;
  if (!link) task.num_classes = o.task.labels == LabelType::classes ? check_classes(comm, o, data, edges) : 1;
  task.num_types = std::max(task.num_types, check_types(comm, o, data, edges));
  if (!edges.lists.empty()) {  // perhaps of pairs that are no edges
    take_lists(comm, data, task, std::move(edges.lists));
    task.of_graph = known_pairs(comm, data.book, data.edges, {&task.train, &task.valid, &task.test});
    task.of_messages = known_pairs(comm, data.book, data.edges, {&task.train});
  } else {
    if (link) task.of_graph = std::make_shared<EdgeSet>(comm, data.book, data.edges);
    divide(comm, o, data, edges, task);
    if (link) task.of_messages = std::make_shared<EdgeSet>(comm, data.book, data.edges);
    for (Index e = 0; e < edges.edges.size() && !link; ++e) append(task.all, edges, e);
  }
  require_parts(comm, o, data, task);
  task.pairs = read_given_pairs(comm, o, data, task.num_types);
  if (link) task.candidates = std::make_shared<const PairCandidates>(candidates(comm, data, task));
  return task;
}

std::shared_ptr<const EdgeSet> held_out_pairs(const Communicator& comm, const PartitionBook& book,
                                              const EdgeTask& task) {
  return known_pairs(comm, book, {}, {&task.valid, &task.test});
}

}  // namespace sar::tools
