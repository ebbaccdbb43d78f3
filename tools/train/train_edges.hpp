/// The edges that `train --task link|edge` is about, and those along which messages pass.
#pragma once

#include "train_options.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <memory>

namespace sar::tools {

/// One part of the edges. Each is on one rank, on any.
struct TaskEdges {
  SeedEdges edges;
  Array<Index> types;            ///< none: all 0
  Array<double> labels;          ///< of --task edge
  NodePairList negatives;        ///< that the dataset has
  Index negatives_per_edge = 0;  ///< as ListedPairs

  [[nodiscard]] std::span<const Index> src() const { return edges.src; }
  [[nodiscard]] std::span<const Index> dst() const { return edges.dst; }
};

struct EdgeTask {
  TaskEdges train, valid, test;
  TaskEdges all;                 ///< --task edge: the edges of the dataset, with or without a label
  bool ids_are_original = true;  ///< of these
  Index num_types = 1;
  Index num_classes = 0;  ///< --task edge: 1 for values
  /// Pairs that do not count as negatives: in training the edges of messages and the training edges, in the
  /// evaluation all edges of the graph and of the task.
  std::shared_ptr<const EdgeSet> of_messages, of_graph;
};

/// Divides the edges as the dataset does, or else by --split-edges. For links, takes the edges of validation
/// and test, and all in the other direction, out of data.edges and of the training edges; not so where the
/// dataset lists pairs. Throws InputError, the same on every rank, when there are no edges, no labels, or no
/// training edges. Collective.
EdgeTask make_edge_task(const Communicator& comm, const TrainOptions& o, NodeData& data, EdgeData edges);

}  // namespace sar::tools
