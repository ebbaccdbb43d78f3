/// How well a model finds the other end of an edge among all nodes, as knowledge graphs are evaluated: the
/// "filtered" ranks of Bordes et al. 2013, and what is counted of them.
///
///     const KnownEdges known(graph, all_edges);  // of training, validation and test
///     const FilteredRanks ranks = filtered_ranks(predictor, graph, h, test, known, relation_rows(form));
///     const RankMetrics found = rank_metrics(ranks, std::vector<Index>{1, 3, 10}, comm);
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/link_predictor.hpp>

#include <compare>
#include <span>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Edges with a relation: global ids of the ends, and the numbers of the relations. Any edges, on any ranks.
struct RelationEdges {
  Array<Index> src, rels, dst;

  [[nodiscard]] Index size() const noexcept { return std::ssize(src); }
};

/// The edges of a homogeneous form, of this rank's destinations in the graph's order of edges; their ids are
/// form.graph.edge_ids(). Collective: the ids of sources travel.
[[nodiscard]] RelationEdges relation_edges(const HomogeneousForm& form);

/// Edges that are known, by either end: those of a source with the rank that owns the destination, those of a
/// destination with the rank that owns the source. 48 bytes an edge, over both.
class KnownEdges {
 public:
  /// Of nodes of `graph`, which is homogeneous. An edge may occur again. Collective. Throws, the same on
  /// every rank, ShapeError when lengths differ, InputError for an end that does not exist.
  KnownEdges(const GraphShardManager& graph, const RelationEdges& edges);

  /// The known edge between a node of any rank and a node of this one.
  struct Edge {
    Index node, rel, other;  ///< `other` is of this rank
    auto operator<=>(const Edge&) const = default;
  };
  /// Those whose end `wanted` is a node of this rank, and the other end is `node`: ascending. Local.
  [[nodiscard]] std::span<const Edge> ends(EdgeEnd wanted, Index node, Index rel) const;

 private:
  Array<Edge> by_source_, by_destination_;  // sorted
};

/// The local rows that may be an end of the edges of a relation.
struct RelationRows {
  Index src_begin, src_end, dst_begin, dst_end;
};
/// Those of the node types at the ends of each edge type.
[[nodiscard]] std::vector<RelationRows> relation_rows(const HomogeneousForm& form);

/// Of each edge of this rank: the rank of its destination among all nodes that may be one, and that of its
/// source. A rank may be a half.
struct FilteredRanks {
  Array<double> of_destinations, of_sources;
};

/// For an edge (u, r, v), the rank of v by the score s_uwr among the nodes w of which no edge (u, r, w) is
/// known; the rank of u likewise:
///
///     rank = 1 + number of nodes with a larger score + 1/2 number of other nodes with an equal one
///
/// so that ties count as the mean over their orders, as in mean_reciprocal_rank. `h`: [local nodes of
/// `graph`, width]; `rows`: for each relation which local rows may be its ends; empty: all. The ranks are the
/// same for every number of ranks of the communicator where h is.
///
/// A query (the row of `width` numbers that a node and a relation make) goes to all ranks, which score the
/// rows that they own, 64 at a time: edges x nodes x width operations, spread as the nodes are. There is no
/// array of pairs: at a time, about 4 MiB of queries are on a rank. Collective. Throws, the same on every
/// rank, ShapeError when shapes do not fit, InputError for an end or a relation that does not exist and for
/// a score that is NaN.
[[nodiscard]] FilteredRanks filtered_ranks(const RelationPredictor& predictor, const GraphShardManager& graph,
                                           const Tensor& h, const RelationEdges& edges,
                                           const KnownEdges& known, std::span<const RelationRows> rows = {});

/// Over the destinations and the sources of the edges of all ranks.
struct RankMetrics {
  double mrr = 0;            ///< the mean of 1 / rank
  double mean_rank = 0;      ///< the mean of the rank
  std::vector<double> hits;  ///< for each K, the share of ranks that are K or less
};

/// Exact: the same bits on every rank and for every number of ranks. Distinct ranks travel to all, 16 bytes
/// each. Collective. Throws InputError, the same on every rank, when there are no edges, and for a K below 1.
[[nodiscard]] RankMetrics rank_metrics(const FilteredRanks& ranks, std::span<const Index> ks,
                                       const Communicator& comm);

}  // namespace sar::inline SAR_PRECISION
