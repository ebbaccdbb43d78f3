// SPDX-License-Identifier: MIT

/// Draws of nodes among their in-edges: each for itself (GraphSAGE: Hamilton, Ying, Leskovec, NeurIPS 2017),
/// and LABOR. For implementation files.
#pragma once

#include <sar/graph/sampling/candidate_edges.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns at most fan-out many in-edges of each of the rows, for each type of edge. `ids`: original
/// ids of all rows of this rank, which key the draws.
[[nodiscard]] KeptEdges draw_neighbors(const CandidateEdges& in, const Array<Index>& ids,
                                       const LayerDraws& draws, const ExcludedEdges& excluded,
                                       const Array<Index>& dst_rows);

// Draws of layer-neighbor sampling: destinations share the draws of their sources, so that a layer needs
// fewer different rows.
//
// LABOR-0 (Balin, Catalyurek, "Layer-Neighbor Sampling - Defusing Neighborhood Explosion in GNNs", NeurIPS
// 2023) with the same probability pi_t = 1 for all sources: each source t has a uniform number r_t, and a
// destination s with d in-edges and fan-out k keeps the edge from t where
//
//     r_t <= c_s pi_t,   c_s = min(1, k / d)
//
// so that k edges are expected, and edges from sources with small numbers are kept by many destinations.
// Numbers of different edges of s are independent, so all sets of the same size are equally likely. A
// destination that would keep no edge keeps the one with the smallest number. So the mean over the kept
// edges is an unbiased estimate of the mean over all, without weights.

/// Local. Returns the kept in-edges of the rows, for each type of edge. Candidates have what find_sources()
/// adds. Parallel edges have numbers of their own.
[[nodiscard]] KeptEdges draw_layer_neighbors(const CandidateEdges& in, const GraphTopology& graph,
                                             const LayerDraws& draws, const ExcludedEdges& excluded,
                                             const Array<Index>& dst_rows);
}}  // namespace sar
