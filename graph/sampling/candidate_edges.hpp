// SPDX-License-Identifier: MIT

/// The in-edges that a sampler may draw, in an order that does not depend on the ranks. For implementation
/// files.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/random.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The edges that may be drawn, sorted by destination, type and edge id.
struct CandidateEdges {
  Array<Index> begin{0};
  Array<local_index> edge;    ///< edge row
  Array<real> weight;         ///< empty: all edges are equally likely
  Array<std::uint16_t> type;  ///< empty: all edges have one type
  // of draws that are keyed by the source
  Array<Index> halo_ids;     ///< original ids of the halo rows
  Array<local_index> place;  ///< among edges with the same ends and type; empty: there are no parallel edges

  /// The candidates of one row and one type.
  struct Run {
    Index first, last;  ///< positions among all candidates
    std::size_t type;
  };

  /// Calls visit(run) for the types of the row's candidates, in order.
  template <class Visit>
  void for_runs(Index row, const Visit& visit) const {
    const Index end = begin[row + 1];
    for (Index first = begin[row]; first < end;) {
      Run run{first, end, 0};
      if (!type.empty()) {
        const auto types = type.begin();
        run.type = types[first];
        run.last = std::upper_bound(types + first, types + end, types[first]) - types;
      }
      visit(run);
      first = run.last;
    }
  }
};

/// The source row of an edge of this rank: a local one, or behind these one of the halo.
inline Index source_of(const GraphTopology& graph, Index edge) {
  return edge < graph.remote.first_edge
             ? graph.local.src[edge]
             : graph.local.num_src_rows + graph.remote.src[edge - graph.remote.first_edge];
}

/// Collective. Checks the probabilities of edges [local edges] and returns whether they are given. Throws
/// InputError, the same on every rank.
bool check_probabilities(const Graph& graph, const Tensor& prob);

/// Local. Lists the candidates: all in-edges, or with `weighted` those with a positive probability. `types`:
/// null if all edges have one type.
CandidateEdges find_candidates(const Graph& graph, const Tensor& prob, bool weighted,
                               const Array<std::uint16_t>* types);

/// Collective. Fills in what draws need that are keyed by the source of an edge.
void find_sources(const Graph& graph, CandidateEdges& candidates);

/// The candidates that no layer uses.
class ExcludedEdges {
 public:
  /// Throws InputError unless the edges are ascending local edge rows.
  ExcludedEdges(const GraphTopology& graph, const CandidateEdges& in, std::span<const Index> edges);

  /// Their positions among all candidates, ascending, those of one row and one type.
  [[nodiscard]] std::span<const Index> of(const CandidateEdges::Run& run) const {
    const auto first = std::lower_bound(positions_.begin(), positions_.end(), run.first);
    return {first, std::lower_bound(first, positions_.end(), run.last)};
  }

 private:
  std::vector<Index> positions_;
};

/// How a layer draws.
struct LayerDraws {
  std::span<const Index> fan_outs;  ///< one for each type
  bool replace = false;
  RandomKey key = {};  ///< of the first type; the others have streams of their own

  /// The draws of a type.
  [[nodiscard]] Random random(std::size_t type) const {
    constexpr int bits_of_layer = 20;
    return Random({key.seed, key.stream + (static_cast<std::uint64_t>(type) << bits_of_layer), key.step});
  }
};

}}  // namespace sar
