/// NegativeSampler: pairs of nodes for an edge to be told from, as DGL's negative samplers.
#pragma once

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/build/edge_set.hpp>
#include <sar/graph/build/node_pairs.hpp>
#include <sar/graph/hetero/hetero_graph.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sar::inline SAR_PRECISION {

struct NegativeOptions {
  Index k = 1;  ///< pairs for each edge
  std::uint64_t seed = 0;
  /// Draws a pair again when its ends are the same node (of a graph whose sources are its destinations).
  bool exclude_self_loops = false;
  /// Draws a pair again when it is one of these edges, for example of the whole graph.
  std::shared_ptr<const EdgeSet> exclude_edges = nullptr;
};

/// The nodes that may be the ends of the edges of a relation: a range of the nodes in the order of their
/// original ids, the end not included, for either end.
struct RelationEnds {
  Index src_begin, src_end, dst_begin, dst_end;
};

/// Of the edge types of a graph, in its homogeneous form: all nodes of the types at their ends. Local.
[[nodiscard]] std::vector<RelationEnds> relation_ends(const HeteroGraph& graph);

/// Draws are functions of (seed, epoch, id of the edge, number of the pair) in terms of the nodes in the
/// order of their original ids, so that an edge has the same pairs for every number of ranks, and whichever
/// rank asks. Where the global ids are not the original ones, a table translates: 8 bytes for each node of
/// the rank. Where the files do not say the original ids (NodeData::ids_are_original is false), those of the
/// partition stand for them, and another partition has other pairs.
///
/// The k pairs of an edge come one after the other: pairs k i, ..., k i + k - 1 are those of edge i. Pairs
/// are global ids, for NodePairs. Nothing keeps a node from being drawn twice or, without exclude_edges, an
/// edge from being drawn.
class NegativeSampler {
 public:
  /// Original ids may be any from 0 on, each of one source (destination). The same options on every rank.
  /// Collective. Throws InputError, the same on every rank, for an original id of two nodes, and unless k
  /// >= 1.
  explicit NegativeSampler(const GraphShardManager& graph, const NegativeOptions& options = {});

  /// DGL's PerSourceUniform: the edge's source with k destinations, uniform over all. `src`: global ids of
  /// the sources of the edges, `edge_ids`: their original ids; any edges on any ranks. Collective. Throws,
  /// the same on every rank, ShapeError when lengths differ, InputError when 100 draws for a pair are
  /// excluded.
  [[nodiscard]] NodePairList per_source(std::span<const Index> src, std::span<const Index> edge_ids,
                                        std::uint64_t epoch) const;
  /// DGL's GlobalUniform: both ends uniform over all nodes (DGL excludes self loops and the edges of the
  /// graph). Collective. Throws as per_source.
  [[nodiscard]] NodePairList global_uniform(std::span<const Index> edge_ids, std::uint64_t epoch) const;
  /// For edges of several types in one graph, such as the homogeneous form of a HeteroGraph: each pair is the
  /// edge with another source or another destination, either with probability 1/2, uniform over the nodes
  /// that may be this end of the edge's relation. `rels`: the relation of each edge, a number of `ends`,
  /// which are the same on every rank. Self loops and edges are excluded as the options say, edges whatever
  /// their relation. Collective. Throws as per_source, InputError, too, for a relation that there is not, and
  /// for ends that are no nodes.
  [[nodiscard]] NodePairList replaced_end(std::span<const Index> src, std::span<const Index> dst,
                                          std::span<const Index> rels, std::span<const Index> edge_ids,
                                          std::span<const RelationEnds> ends, std::uint64_t epoch) const;

 private:
  /// From the numbers of nodes in the order of their original ids to global ids; rank p has the part of the
  /// table that `slices` gives it.
  struct Nodes {
    PartitionBook slices;
    Array<Index> table;
    bool same;  ///< they are the global ids, and there is no table
  };
  static Nodes make_nodes(const Communicator& comm, const PartitionBook& book, const Array<Index>& ids,
                          const char* what);

  /// Pairs whose ends `propose` writes, again and again until none is excluded. It adds a slot to new_src or
  /// new_dst where it has written the number of a node in the order of the original ids.
  struct Proposal {
    NodePairList pairs{};
    Array<Index> new_src{}, new_dst{};
  };
  using Propose = FunctionRef<void(const Random& random, Index slot, std::uint64_t number, Proposal& to)>;
  [[nodiscard]] NodePairList draw(std::span<const Index> edge_ids, std::uint64_t epoch,
                                  Propose propose) const;
  void require_ends(std::span<const RelationEnds> ends) const;
  [[nodiscard]] const Nodes& sources() const { return src_ ? *src_ : *dst_; }
  /// Those of the pairs `slots` that must be drawn again. Collective.
  [[nodiscard]] Array<Index> excluded(const NodePairList& pairs, const Array<Index>& slots) const;

  Communicator comm_;
  NegativeOptions options_;
  std::optional<Nodes> dst_;  // made where all ranks learn of a failure
  std::optional<Nodes> src_;  // none: sources are the destinations
};

}  // namespace sar
