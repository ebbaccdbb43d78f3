// SPDX-License-Identifier: MIT

/// Edges in a file, as an array of two rows: sources and destinations.
#pragma once

#include <sar/core/files/npy.hpp>
#include <sar/graph/data/node_data.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Throws InputError, beginning with `place`, for an edge to a node that does not exist.
void require_nodes(const std::string& place, const EdgeList& edges, Index num_sources,
                   Index num_destinations);

/// Local. Edges [begin, end) of an array [2, E] in C or Fortran order; the id of an edge is its column.
/// Throws InputError for an element that is not an integer, and as require_nodes().
EdgeList read_edge_range(const NpyFile& edge_index, Index num_sources, Index num_destinations, Index begin,
                         Index end);

}}  // namespace sar
