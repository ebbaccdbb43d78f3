// SPDX-License-Identifier: MIT

/// Edges of the tasks link and edge: training, validation and test edges, and the edges that carry messages.
#pragma once

#include "options/train_options.hpp"
#include "train_pairs.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sar::tools {

/// The edges of one split. Each edge is on exactly one rank, which need not own its ends.
struct TaskEdges {
  SeedEdges edges;
  Array<Index> types;            ///< empty: all 0
  Array<double> labels;          ///< --task edge only
  Index unlabelled = 0;          ///< --task edge: edges of the split without a label, of all ranks; left out
  NodePairList negatives;        ///< negatives listed by the dataset
  Index negatives_per_edge = 0;  ///< see ListedPairs

  [[nodiscard]] std::span<const Index> src() const { return edges.src; }
  [[nodiscard]] std::span<const Index> dst() const { return edges.dst; }
};

struct EdgeTask {
  TaskEdges train, valid, test;
  GivenPairs pairs;              ///< --predict-pairs
  TaskEdges all;                 ///< --task edge: the edges of the dataset, with or without a label
  bool ids_are_original = true;  ///< of `all`
  Index num_types = 1;
  Index num_classes = 0;  ///< --task edge: 1 for values
  /// Pairs that are never negatives. Training: message edges and training edges. Evaluation: all edges of the
  /// graph and of the task.
  std::shared_ptr<const EdgeSet> of_messages, of_graph;
  /// --task link: the nodes that negatives are drawn from, those that edges of the task join.
  std::shared_ptr<const PairCandidates> candidates;
  /// --filtered-ranks: the local rows of the nodes that may be ends of an edge; empty: all.
  std::vector<RelationRows> rows;
  /// A typed graph: its edge types with edges of the task, or their reverse.
  std::vector<Index> edge_types;
};

/// Collective. Splits data.edge_data, which is empty afterwards, by the dataset's split, or by
/// --split-edges if it has none. For links it removes validation and test edges, in both directions, from
/// data.edges and from the training edges, unless the dataset lists pairs. Throws InputError, the same on
/// every rank, if there are no edges, no labels or no training edges.
EdgeTask make_edge_task(const Communicator& comm, const TrainOptions& o, NodeData& data);

/// Collective. Makes the task of o.relation as make_edge_task() does, and removes its validation and test
/// edges from `graph`, so that they carry no messages: from the edge type itself, and from each type whose
/// edges all are edges of it, in the same or the reverse direction, or which o.reverse_relations name. Other
/// types between the same node types stay as they are; a note says how many held-out pairs they join. If the
/// dataset lists pairs, all edges stay. Edge data of the type are read and deleted. Prints, on rank 0,
/// which types have the edges. Throws InputError, the same on every rank, for an unknown type, a reverse type
/// that joins other node types, and as make_edge_task().
EdgeTask make_relation_task(const Communicator& comm, const TrainOptions& o, GraphData& graph);

/// The directions in which edges are looked up in a set.
struct Directions {
  bool same = true, reverse = true;

  [[nodiscard]] bool any() const { return same || reverse; }
  /// Collective. Returns which edges are in the set in one of the directions.
  [[nodiscard]] Array<std::uint8_t> find(const EdgeSet& set, std::span<const Index> src,
                                         std::span<const Index> dst) const;
};

/// Local. Returns the edges that are not dropped.
EdgeList without(const EdgeList& edges, const Array<std::uint8_t>& dropped);

/// Collective. The validation and test pairs.
std::shared_ptr<const EdgeSet> held_out_pairs(const Communicator& comm, const PartitionBook& book,
                                              const EdgeTask& task);

}  // namespace sar::tools
