// SPDX-License-Identifier: MIT

/// Metrics of link prediction: how well scores separate edges from other pairs, and ranks of true ends.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/sampling/negative_sampler.hpp>
#include <sar/nn/models/link_predictor.hpp>
#include <sar/nn/train/metrics.hpp>

#include <compare>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Metrics of how well scores separate edges (positives) from other pairs (negatives), over the scores of all
// ranks. ROC-AUC and average precision, which nodes have, too, are in nn/train/metrics.hpp.
//
// Every function is collective and exact: it counts, and returns the same bits on every rank and for any
// number of ranks. A rank may have no scores. Throws InputError on every rank if no rank has a positive, or
// no rank has a negative, or a score is NaN. Equal scores are ties; -0 equals 0.

/// Returns OGB's Hits at K: the fraction of positives whose score is above the K-th best of all negatives, or
/// 1 if there are fewer than K negatives. Also throws InputError unless K >= 1.
///
/// Finds the K-th best negative with eight all_reduces of 2 KiB. Memory: 8 bytes per local negative.
double hits_at_k(const Tensor& positive, const Tensor& negative, Index k, const Communicator& comm);

/// Returns OGB's MRR: the mean over the positives of 1 / rank, where each positive is ranked among its own
/// negatives:
///
///     rank = 1 + number of larger scores + 1/2 number of equal scores
///
/// positive [n] or [n, 1]; negative [n, k], where k may differ between ranks of the communicator. One
/// all_reduce of 16 k bytes counts the positives of each rank value. Throws ShapeError for other shapes.
double mean_reciprocal_rank(const Tensor& positive, const Tensor& negative, const Communicator& comm);

// Link prediction metrics of knowledge graphs: ranks the true end of an edge among all nodes, with the
// "filtered" ranks of Bordes et al. 2013, and summarizes the ranks as MRR, mean rank and Hits at K.
//
//     const KnownEdges known(graph, all_edges);  // of training, validation and test
//     const FilteredRanks ranks = filtered_ranks(predictor, graph, h, test, known, relation_rows(form));
//     const RankMetrics found = rank_metrics(ranks, std::vector<Index>{1, 3, 10}, comm);

/// Edges with a relation: the global ids of their ends and their relation numbers. Edges may be given on any
/// rank.
struct RelationEdges {
  Array<Index> src, rels, dst;

  [[nodiscard]] Index size() const noexcept { return std::ssize(src); }
};

/// Returns the edges of a homogeneous form whose destinations are on this rank, in the graph's edge order;
/// their ids are form.graph.edge_ids(). Collective: exchanges the ids of the sources.
[[nodiscard]] RelationEdges relation_edges(const HomogeneousForm& form);

/// An index of the known edges by either end. The owner of the destination stores the edges by source, and
/// the owner of the source stores them by destination. Memory: 48 bytes per edge in total.
class KnownEdges {
 public:
  /// Collective. Indexes edges between nodes of `graph`, which is homogeneous. Duplicate edges are allowed.
  /// Throws the same exception on every rank: ShapeError if lengths differ, InputError for an end that does
  /// not exist.
  KnownEdges(const Graph& graph, const RelationEdges& edges);

  /// A known edge between a node of any rank and a node of this rank.
  struct Edge {
    Index node, rel, other;  ///< `other` is on this rank
    auto operator<=>(const Edge&) const = default;
  };
  /// Local. Returns the known edges, in ascending order, whose end `wanted` is on this rank and whose other
  /// end is `node`.
  [[nodiscard]] std::span<const Edge> ends(EdgeEnd wanted, Index node, Index rel) const;

 private:
  Array<Edge> by_source_, by_destination_;  // sorted
};

/// The local rows that may be an end of an edge of a relation.
using RelationRows = RelationEnds;
/// Returns, for each edge type, the rows of the node types at its ends.
[[nodiscard]] std::vector<RelationRows> relation_rows(const HomogeneousForm& form);

/// For each edge of this rank, the rank of its destination among all candidate destinations, and the rank of
/// its source among all candidate sources. Ties may make a rank a multiple of 1/2.
struct FilteredRanks {
  Array<double> of_destinations, of_sources;
};

/// Collective. Returns the filtered ranks of the ends of each edge. For an edge (u, r, v), v is ranked by
/// the score s_uwr among the nodes w for which no edge (u, r, w) is known; u is ranked in the same way:
///
///     rank = 1 + number of nodes with a larger score + 1/2 number of other nodes with an equal one
///
/// A tie thus counts as the mean over its orders, as in mean_reciprocal_rank. `h`: [local nodes of `graph`,
/// width]. `rows`: for each relation, the local rows that may be its ends; if empty, all rows. The ranks do
/// not depend on the number of ranks of the communicator if h does not.
///
/// A query is the row of `width` values computed from a node and a relation. It is sent to all ranks, and
/// each rank scores its own rows, 64 at a time. The total work is edges x nodes x width operations,
/// distributed as the nodes are. No array of pairs is allocated; a rank holds about 4 MiB of queries at a
/// time. Throws the same exception on every rank: ShapeError if shapes do not match, InputError for an end
/// or a relation that does not exist and for a NaN score.
[[nodiscard]] FilteredRanks filtered_ranks(const RelationPredictor& predictor, const Graph& graph,
                                           const Tensor& h, const RelationEdges& edges,
                                           const KnownEdges& known, std::span<const RelationRows> rows = {});

/// Metrics over the destinations and the sources of the edges of all ranks.
struct RankMetrics {
  double mrr = 0;            ///< mean of 1 / rank
  double mean_rank = 0;      ///< mean of the rank
  std::vector<double> hits;  ///< for each K, the fraction of ranks that are at most K
};

/// Summarizes ranks. Exact: the same bits on every rank and for every number of ranks. Collective: sends the
/// distinct ranks to all ranks, 16 bytes each. Throws InputError on every rank if there are no edges or a K
/// is below 1.
[[nodiscard]] RankMetrics rank_metrics(const FilteredRanks& ranks, std::span<const Index> ks,
                                       const Communicator& comm);
}}  // namespace sar
