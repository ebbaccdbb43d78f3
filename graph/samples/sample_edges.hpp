// SPDX-License-Identifier: MIT

/// Changes of the edges of graph samples. All functions are local.
#pragma once

#include <sar/graph/samples/graph_samples.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Sorts the edges of each graph by destination, then by source, with their fields; equal edges keep
/// their order. Throws InputError for ends outside of their graph and for fields of the edges without a row
/// for each.
void sort_edges(GraphSamples& samples);

/// Local. Adds an edge (v, u) for each edge (u, v), with the same fields, and sorts the edges. Throws as
/// sort_edges.
void add_reverse_edges(GraphSamples& samples);

/// Local. Adds an edge (v, v) for each node v, with fields of zeros, and sorts the edges. Throws as
/// sort_edges.
void add_self_loops(GraphSamples& samples);

}}  // namespace sar
