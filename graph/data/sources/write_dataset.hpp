// SPDX-License-Identifier: MIT

/// Writing any graph as a dataset directory.
#pragma once

#include <sar/graph/data/graph_source.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Writes into a new directory what DatasetSource reads. Of a homogeneous graph, these are
/// edge_index.npy [2, E], NAME.npy for each node field, and edge_NAME.npy for each edge field (a name that
/// begins with edge_ stays as it is). Nodes and edges keep their ids. A rank needs memory for its share of
/// the edges and some MB. Throws InputError, the same on every rank, when the directory exists or cannot be
/// written, for a field whose name no file can have, and what the source throws; then nothing is left
/// behind.
void write_dataset(GraphSource& source, const std::string& directory);

}}  // namespace sar
