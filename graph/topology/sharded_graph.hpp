// SPDX-License-Identifier: MIT

/// The graph behind a Graph: a topology and its degrees, or the view of one whose halo is held.
/// DegreeCache: degrees of a graph and what follows from them, computed when an operation first asks.
#pragma once

#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// Degrees taken from another graph; null: not available.
struct KnownDegrees {
  std::shared_ptr<const LazyArray> in = nullptr;   ///< of the destinations; otherwise counted in the shards
  std::shared_ptr<const LazyArray> out = nullptr;  ///< of the sources; otherwise counted
  std::shared_ptr<const LazyArray> src_in = nullptr;  ///< in-degrees of the sources
};

struct DegreeCache {
  DegreeCache(std::shared_ptr<const GraphTopology> topology, KnownDegrees known);

  std::shared_ptr<const LazyArray> in, out;
  /// In-degrees of the sources; null if they are not available.
  std::shared_ptr<const LazyArray> src_in;
  /// Factors of rows, as far as an operation has asked for them and the graph keeps them
  /// (graph/message/degree_factors.hpp).
  struct RowFactors {
    Tensor rows;  ///< of the local ones
    Tensor halo;  ///< of the halo rows
  };
  mutable std::array<std::array<RowFactors, 4>, 3> row_factors;  ///< by NodeDegree and DegreeFactor
  mutable std::mutex rows_mutex;  ///< of `rows`, for which several threads may ask at once

  /// src_in. Throws InputError where it is not known.
  [[nodiscard]] const LazyArray& in_of_sources() const;
  /// Whether one value per row costs less memory than the edges.
  [[nodiscard]] bool keeps_numbers_of(Index rows) const noexcept { return rows <= topology_->num_edges(); }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  std::shared_ptr<const GraphTopology> topology_;
};

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
