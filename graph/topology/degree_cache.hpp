// SPDX-License-Identifier: MIT

/// DegreeCache: degrees of a graph and what follows from them, computed when an operation first asks.
#pragma once

#include <sar/core/memory/lazy_array.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <array>
#include <memory>
#include <mutex>

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

  /// src_in. Throws InputError where it is not known.
  [[nodiscard]] const LazyArray& in_of_sources() const;
  /// 1 / in-degree, 0 where that is 0: the factors of a mean. Kept where keeps_numbers_of(destinations), or
  /// made for each call. Several threads may ask at once.
  [[nodiscard]] Tensor inverse_in() const;
  /// Whether one value per row costs less memory than the edges.
  [[nodiscard]] bool keeps_numbers_of(Index rows) const noexcept { return rows <= topology_->num_edges(); }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  std::shared_ptr<const GraphTopology> topology_;
  mutable std::once_flag inverse_once_;
  mutable Tensor inverse_in_;
};

}}  // namespace sar
