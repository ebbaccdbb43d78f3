// SPDX-License-Identifier: MIT

/// The graph behind a GraphShardManager: a topology and its degrees, or the view of one whose halo is held.
#pragma once

#include <sar/graph/topology/degree_cache.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <array>
#include <memory>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

struct ShardedGraph {
  std::shared_ptr<const GraphTopology> topology;
  DegreeCache degrees;
  /// Set if the source rows of this graph include the halo rows, so that nothing is fetched: the graph with
  /// the same edges that fetches its halo rows. Null for other graphs.
  std::shared_ptr<const ShardedGraph> travelling = nullptr;
  SharedIds shared_src_ids = topology->shared_src_ids;  ///< with those of the halo rows, if they are held
  /// Normalized edge weights [local edges], by EdgeNorm, where kept_edge_weight_norm() was called on this
  /// graph or, for a layer, on the whole graph.
  mutable std::array<Tensor, 3> edge_norms = {};

  explicit ShardedGraph(std::shared_ptr<const GraphTopology> edges, KnownDegrees known = {})
      : topology(std::move(edges)), degrees(topology, std::move(known)) {}
  /// Collective. The view of `graph` whose source rows are the local ones and then the halo rows. `ids`: of
  /// these rows. Degrees of halo rows that no edge reads are 0.
  static std::shared_ptr<const ShardedGraph> holding_halo(std::shared_ptr<const ShardedGraph> graph,
                                                          SharedIds ids);

  [[nodiscard]] bool holds_halo() const noexcept { return travelling != nullptr; }
  [[nodiscard]] Index num_src_rows() const noexcept {
    return topology->local.num_src_rows + (holds_halo() ? topology->remote.num_src_rows : 0);
  }
  [[nodiscard]] bool is_homogeneous() const { return !holds_halo() && topology->is_homogeneous(); }
  /// Of all arrays that are there now: edges, ids, degrees, halo rows; not the weights of edges.
  [[nodiscard]] std::size_t bytes() const noexcept { return topology->bytes() + degrees.bytes(); }
};

}}  // namespace sar
