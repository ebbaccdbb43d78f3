/// Edges in a file, as an array of two rows: sources and destinations.
#pragma once

#include <sar/core/files/npy.hpp>
#include <sar/graph/data/node_data.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Edges [begin, end) of an array of integers [2, E] in C or Fortran order; the id of an edge is its column.
/// Throws InputError for an edge to a node that does not exist. Local.
EdgeList read_edge_range(const NpyFile& edge_index, Index num_sources, Index num_destinations, Index begin,
                         Index end);

}}  // namespace sar
