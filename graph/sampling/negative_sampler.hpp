// SPDX-License-Identifier: MIT

/// EdgeSet: a distributed set of edges that any rank can query.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/random.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/sampling/node_pairs.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A rank stores the sources of the edges into its nodes, 8 bytes per edge and per node. Copies share
/// nothing.
///
/// @code
/// const EdgeSet edges(comm, data.book, data.edges);
/// const std::vector<Index> src{0, 1}, dst{299, 0};
/// const Array<std::uint8_t> are_edges = edges.contains(src, dst);
/// @endcode
class EdgeSet {
 public:
  /// Collective. `edges`: the in-edges of this rank's destinations, in any order; `dst_book`: the owners of
  /// the destinations. Throws the same exception on every rank: InputError for a destination that the rank
  /// does not own or a book with another number of ranks, ShapeError if lengths differ.
  EdgeSet(const Communicator& comm, const PartitionBook& dst_book, const EdgeList& edges);

  /// Returns, for each pair of global ids, 1 if it is an edge and 0 otherwise. Pairs may repeat. Collective:
  /// a pair costs 17 bytes of communication with the owner of its destination. Throws the same exception on
  /// every rank: ShapeError if lengths differ, InputError for a destination that does not exist.
  [[nodiscard]] Array<std::uint8_t> contains(std::span<const Index> src, std::span<const Index> dst) const;

 private:
  Communicator comm_;
  std::optional<PartitionBook> dst_book_;  // set inside agree()
  Grouped<Index> sources_;                 // of each node of the rank, in order
};

// NegativeSampler: draws pairs of nodes that are not edges for link prediction, as DGL's negative samplers.

// The nodes that negative pairs of link prediction are drawn from.
//
// A predictor tells a pair of two users from an edge between a user and an item by the kind of its nodes. So
// negatives go as the edges do: from a node that is the source of an edge to one that is a destination. In a
// bipartite graph whose edges go both ways, they also go from one side to the other.

/// Sources and destinations of the edges that go one way.
struct CandidateNodes {
  Array<std::uint8_t> src, dst;    ///< for each node of this rank: is it one?
  Index num_src = 0, num_dst = 0;  ///< of all ranks
  Index num_edges = 0;
};

struct PairCandidates {
  /// One element; or two of a bipartite graph whose edges go both ways: from one side to the other, and back.
  std::vector<CandidateNodes> ways;
  /// Every edge joins two sides: no cycle has an odd length, or no node is both a source and a destination.
  bool is_bipartite = false;

  /// Local. "200 sources and 300 destinations, a bipartite graph".
  [[nodiscard]] std::string describe() const;
};

/// Collective. The candidates of these edges; self loops do not count. In a bipartite graph of several
/// components, the node of the smallest original id of each component is on the first side. Each edge is on
/// one rank, on any. `original_ids` are those of the rank's nodes, below 2^62. Throws the same exception on
/// every rank: ShapeError if lengths differ, InputError for an end that is not a node.
PairCandidates candidates_of_edges(const Communicator& comm, const PartitionBook& book,
                                   const Array<Index>& original_ids, std::span<const Index> src,
                                   std::span<const Index> dst);

struct NegativeOptions {
  Index k = 1;  ///< pairs per edge
  std::uint64_t seed = 0;
  /// Redraws a pair if its ends are the same node (for a graph whose sources are its destinations).
  bool exclude_self_loops = false;
  /// Redraws a pair if it is one of these edges, for example those of the whole graph.
  std::shared_ptr<const EdgeSet> exclude_edges = nullptr;
  /// Draws ends from these nodes instead of all. For a graph whose sources are its destinations.
  std::shared_ptr<const PairCandidates> candidates = nullptr;
};

/// The candidate nodes at both ends of a relation: ranges [begin, end) of the nodes in the order of their
/// original ids.
struct RelationEnds {
  Index src_begin, src_end, dst_begin, dst_end;
};

/// Local. Returns the candidates of each edge type of a graph, in its homogeneous form: all nodes of the
/// types at its ends.
[[nodiscard]] std::vector<RelationEnds> relation_ends(const Graph& graph);
/// The same for given types; the nodes of type t are first[t], ..., first[t + 1] - 1.
[[nodiscard]] std::vector<RelationEnds> relation_ends(std::span<const std::string> node_types,
                                                      std::span<const EdgeType> edge_types,
                                                      std::span<const Index> first);

/// Draws are functions of (seed, epoch, id of the edge, index of the pair) over the nodes in the order of
/// their original ids. An edge therefore gets the same pairs for every number of ranks and on whichever rank
/// it is. If global ids are not the original ids, a table of 8 bytes per node of the rank translates them. If
/// the files do not contain original ids (NodeData::ids_are_original is false), the ids of the partition are
/// used instead, and another partition gives other pairs.
///
/// The k pairs of an edge are adjacent: edge i has the pairs k i, ..., k i + k - 1. Pairs are global ids,
/// ready for NodePairs. A node may be drawn repeatedly and, without exclude_edges, an edge may be drawn.
///
/// @code
/// const NegativeSampler sampler(graph, {.k = 2, .seed = 0, .exclude_self_loops = true});
/// const NodePairList drawn = sampler.global_uniform(data.edges.id, /*epoch=*/1);  // 2 pairs for each edge
/// const NodePairs pairs(comm, data.book, drawn.src, drawn.dst);
/// @endcode
class NegativeSampler {
 public:
  /// Collective. Original ids may be any ids from 0 on, distinct among the sources and among the
  /// destinations. Options are the same on every rank. Throws InputError on every rank for k below 1, for a
  /// duplicate original id and for candidates of another graph.
  explicit NegativeSampler(const Graph& graph, const NegativeOptions& options = {});

  /// Collective. Pairs each edge's source with k destinations drawn uniformly from all (DGL's
  /// PerSourceUniform), or from the candidates; if the candidates go two ways, from those of the way that
  /// has the source. `src`: global ids of the edges' sources; `edge_ids`: original ids of the edges. Any
  /// rank may pass any edges. Throws the same exception on every rank: ShapeError if lengths differ,
  /// InputError if 100 draws for a pair are excluded.
  [[nodiscard]] NodePairList per_source(std::span<const Index> src, std::span<const Index> edge_ids,
                                        std::uint64_t epoch) const;
  /// Collective. Draws both ends uniformly from all nodes (DGL's GlobalUniform, which also excludes self
  /// loops and edges of the graph), or from the candidates; if they go two ways, each as often as edges do.
  /// Throws as per_source.
  [[nodiscard]] NodePairList global_uniform(std::span<const Index> edge_ids, std::uint64_t epoch) const;
  /// Collective. Corrupts edges of several relations in one graph, such as the homogeneous form of a
  /// Graph. Each pair is the edge with its source or its destination replaced, either with
  /// probability 1/2, by a node drawn uniformly from the candidates of this end of the edge's relation.
  /// `rels`: the relation of each edge, an index into `ends`, which are the same on every rank. Self loops
  /// and edges are excluded as the options say; edges of any relation are excluded. Throws as per_source,
  /// and InputError for an invalid relation, ends that are not nodes, and with the option `candidates`.
  [[nodiscard]] NodePairList replaced_end(std::span<const Index> src, std::span<const Index> dst,
                                          std::span<const Index> rels, std::span<const Index> edge_ids,
                                          std::span<const RelationEnds> ends, std::uint64_t epoch) const;

 private:
  /// Some nodes, numbered in the order of their original ids, and the global id of each number. The table is
  /// distributed over the ranks as `slices` says.
  struct Nodes {
    PartitionBook slices;
    Array<Index> table;
    bool same;  ///< number and global id are the same; the table is empty

    [[nodiscard]] Index size() const { return slices.num_nodes(); }
  };
  /// Nodes that are drawn as sources and destinations; the same if all are.
  struct Way {
    std::shared_ptr<const Nodes> src, dst;
  };
  static Nodes make_nodes(const Communicator& comm, const PartitionBook& book, const Array<Index>& ids,
                          std::span<const std::uint8_t> selected, const char* what);
  void make_ways(const PairCandidates& candidates, const PartitionBook& book, const Array<Index>& ids);

  /// Pairs that `propose` writes, repeatedly until none is excluded. propose() adds a slot to new_src or
  /// new_dst of a way when it has written a number of this way's nodes.
  struct Proposal {
    NodePairList pairs{};
    std::vector<Array<Index>> new_src{}, new_dst{};  // by way
  };
  using Propose = FunctionRef<void(const Random& random, Index slot, std::uint64_t number, Proposal& to)>;
  [[nodiscard]] NodePairList draw(const char* call, std::span<const Index> edge_ids, std::uint64_t epoch,
                                  Propose propose) const;
  void require_ends(std::span<const RelationEnds> ends) const;
  [[nodiscard]] std::size_t draw_way(std::uint64_t epoch, Index edge, std::uint64_t number) const;
  /// Collective. Returns the pairs of `slots` that must be drawn again.
  [[nodiscard]] Array<Index> excluded(const NodePairList& pairs, const Array<Index>& slots) const;

  Communicator comm_;
  NegativeOptions options_;
  bool is_homogeneous_ = true;  // set inside agree(), as what follows
  std::vector<Way> ways_;       // one of all nodes, or of the candidates
  double first_share_ = 1;      // of the edges that go the first way
  std::optional<PartitionBook> book_;
  Array<std::uint8_t> way_of_source_;  // of this rank's nodes, if there are two
};
}}  // namespace sar
