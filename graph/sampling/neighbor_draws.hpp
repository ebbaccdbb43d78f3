// SPDX-License-Identifier: MIT

/// Draws of nodes that choose among their own in-edges (GraphSAGE: Hamilton, Ying, Leskovec, NeurIPS 2017).
/// For implementation files.
#pragma once

#include <sar/graph/sampling/candidate_edges.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns at most fan-out many in-edges of each of the rows, for each type of edge. `ids`: original
/// ids of all rows of this rank, which key the draws.
[[nodiscard]] KeptEdges draw_neighbors(const CandidateEdges& in, const Array<Index>& ids,
                                       const LayerDraws& draws, const ExcludedEdges& excluded,
                                       const Array<Index>& dst_rows);

}}  // namespace sar
