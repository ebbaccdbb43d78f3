/// NegativeSampler: draws pairs of nodes that are not edges for link prediction, as DGL's negative samplers.
#pragma once

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/random/random.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/construct/edge_set.hpp>
#include <sar/graph/construct/node_pairs.hpp>
#include <sar/graph/hetero/hetero_graph.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct NegativeOptions {
  Index k = 1;  ///< pairs per edge
  std::uint64_t seed = 0;
  /// Redraws a pair if its ends are the same node (for a graph whose sources are its destinations).
  bool exclude_self_loops = false;
  /// Redraws a pair if it is one of these edges, for example those of the whole graph.
  std::shared_ptr<const EdgeSet> exclude_edges = nullptr;
};

/// The candidate nodes at both ends of a relation: ranges [begin, end) of the nodes in the order of their
/// original ids.
struct RelationEnds {
  Index src_begin, src_end, dst_begin, dst_end;
};

/// Returns the candidates of each edge type of a graph, in its homogeneous form: all nodes of the types at
/// its ends. Local.
[[nodiscard]] std::vector<RelationEnds> relation_ends(const HeteroGraph& graph);
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
class NegativeSampler {
 public:
  /// Original ids may be any ids from 0 on, distinct among the sources and among the destinations. Options
  /// are the same on every rank. Throws InputError on every rank for k below 1 and for a duplicate original
  /// id. Collective.
  explicit NegativeSampler(const GraphShardManager& graph, const NegativeOptions& options = {});

  /// Pairs each edge's source with k destinations drawn uniformly from all (DGL's PerSourceUniform). `src`:
  /// global ids of the edges' sources; `edge_ids`: original ids of the edges. Any rank may pass any edges.
  /// Throws the same exception on every rank: ShapeError if lengths differ, InputError if 100 draws for a
  /// pair are excluded. Collective.
  [[nodiscard]] NodePairList per_source(std::span<const Index> src, std::span<const Index> edge_ids,
                                        std::uint64_t epoch) const;
  /// Draws both ends uniformly from all nodes (DGL's GlobalUniform, which also excludes self loops and edges
  /// of the graph). Throws as per_source. Collective.
  [[nodiscard]] NodePairList global_uniform(std::span<const Index> edge_ids, std::uint64_t epoch) const;
  /// Corrupts edges of several relations in one graph, such as the homogeneous form of a HeteroGraph. Each
  /// pair is the edge with its source or its destination replaced, either with probability 1/2, by a node
  /// drawn uniformly from the candidates of this end of the edge's relation. `rels`: the relation of each
  /// edge, an index into `ends`, which are the same on every rank. Self loops and edges are excluded as the
  /// options say; edges of any relation are excluded. Throws as per_source, and InputError for an invalid
  /// relation or ends that are not nodes. Collective.
  [[nodiscard]] NodePairList replaced_end(std::span<const Index> src, std::span<const Index> dst,
                                          std::span<const Index> rels, std::span<const Index> edge_ids,
                                          std::span<const RelationEnds> ends, std::uint64_t epoch) const;

 private:
  /// Maps the rank of a node in the order of original ids to its global id. The table is distributed over the
  /// ranks as `slices` says.
  struct Nodes {
    PartitionBook slices;
    Array<Index> table;
    bool same;  ///< original and global order are the same; the table is empty
  };
  static Nodes make_nodes(const Communicator& comm, const PartitionBook& book, const Array<Index>& ids,
                          const char* what);

  /// Pairs that `propose` writes, repeatedly until none is excluded. propose() adds a slot to new_src or
  /// new_dst when it has written a node as its rank in the order of original ids.
  struct Proposal {
    NodePairList pairs{};
    Array<Index> new_src{}, new_dst{};
  };
  using Propose = FunctionRef<void(const Random& random, Index slot, std::uint64_t number, Proposal& to)>;
  [[nodiscard]] NodePairList draw(const char* call, std::span<const Index> edge_ids, std::uint64_t epoch,
                                  Propose propose) const;
  void require_ends(std::span<const RelationEnds> ends) const;
  [[nodiscard]] const Nodes& sources() const { return src_ ? *src_ : *dst_; }
  /// Returns the pairs of `slots` that must be drawn again. Collective.
  [[nodiscard]] Array<Index> excluded(const NodePairList& pairs, const Array<Index>& slots) const;

  Communicator comm_;
  NegativeOptions options_;
  std::optional<Nodes> dst_;  // set inside agree()
  std::optional<Nodes> src_;  // empty: sources are the destinations
};

}}  // namespace sar
