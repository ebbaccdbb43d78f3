// SPDX-License-Identifier: MIT

/// SaintDraws: the nodes of a GraphSAINT subgraph, drawn by their owners. For implementation files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/random/random.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/sampling/candidate_edges.hpp>
#include <sar/graph/sampling/saint_options.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// All decisions are functions of the step and of the original id of a node or the id of an edge:
///
///     node   node v is drawn where r_v < 1 - (1 - q_v)^n,   q_v = max(1, out-degree of v) / sum over all nodes
///     edge   edge u -> v is drawn where r_uv < 1 - (1 - q_uv)^n,   q_uv = (1 / d_u + 1 / d_v) / sum over all
///            edges, with the out-degree d_u and the in-degree d_v; its ends are in the batch
///     walk   node v is a root where r_v < 1 - (1 - 1 / N)^n; from each root, a walk goes to random in-neighbors
///
/// n = SaintOptions::draws: the probabilities are those of n draws with replacement. All sums are of
/// integers, so they have the same bits on every number of ranks: the edges' sum is the number of nodes with
/// out-edges and of those with in-edges.
class SaintDraws {
 public:
  /// Collective. Options are the same on every rank.
  SaintDraws(const Graph& graph, const SaintOptions& options);

  /// Collective. Returns for each node of this rank whether the subgraph of `step` has it.
  [[nodiscard]] std::vector<std::uint8_t> draw(std::uint64_t step) const;

  /// 1 - (1 - q)^n of each source row and each halo row, for the method node; otherwise empty.
  [[nodiscard]] const Array<double>& node_probabilities() const noexcept { return of_node_; }

 private:
  [[nodiscard]] Random random(std::uint64_t step, std::uint64_t purpose) const;
  void draw_nodes(const Random& random, std::vector<std::uint8_t>& is_in) const;
  void draw_edges(const Random& of_rows, const Random& of_edges, std::vector<std::uint8_t>& is_in) const;
  void walk(const Random& roots, const Random& steps, std::vector<std::uint8_t>& is_in) const;
  /// That a source of this candidate edge is drawn. `row`: its destination.
  [[nodiscard]] double edge_probability(Index row, Index candidate) const;

  Graph graph_;
  SaintOptions options_;
  Array<double> of_node_;        // node: probabilities of source and halo rows
  CandidateEdges candidates_;    // edge, walk: in-edges by edge id
  Array<Index> out_degrees_;     // edge: of source and halo rows
  Array<double> of_row_;         // edge: probability that any in-edge of the row is drawn
  double edge_sum_ = 0;          // edge: of 1 / d_u + 1 / d_v
  double root_probability_ = 0;  // walk
};

/// Values for some halo rows, sent to the owners of these rows and answered by them.
class OwnerRequests {
 public:
  /// Collective. `halo_rows`: numbers of halo rows of this rank, in any order; they may repeat. Sends 4 bytes
  /// for each to its owner.
  OwnerRequests(const GraphTopology& graph, std::span<const Index> halo_rows);

  /// The rows of this rank that the others named, those of rank 0 first.
  [[nodiscard]] const std::vector<local_index>& rows() const noexcept { return rows_; }

  /// Collective. Sends value i with halo row i. Returns the values that belong to rows().
  template <class T>
  [[nodiscard]] std::vector<T> send(std::span<const T> values) const {
    std::vector<T> sorted;
    sorted.reserve(order_.size());
    for (const Index i : order_) sorted.push_back(values[static_cast<std::size_t>(i)]);
    return comm_.all_to_all_v<T>(sorted, sent_, arriving_);
  }

  /// Collective. `values`: one for each of rows(). Returns those of the halo rows, in their order.
  template <class T>
  [[nodiscard]] std::vector<T> answer(std::span<const T> values) const {
    const std::vector<T> sorted = comm_.all_to_all_v<T>(values, arriving_, sent_);
    std::vector<T> answers(order_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) answers[static_cast<std::size_t>(order_[k])] = sorted[k];
    return answers;
  }

 private:
  Communicator comm_;
  std::vector<Index> order_;  // positions among the halo rows, by owner
  std::vector<Index> sent_, arriving_;
  std::vector<local_index> rows_;
};

}}  // namespace sar
