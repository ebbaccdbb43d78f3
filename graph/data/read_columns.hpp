// SPDX-License-Identifier: MIT

/// The fields of a graph that has been read from a source.
#pragma once

#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Reads all fields of this rank's nodes and edges; those that choose_sparse_fields() marked as
/// sparse rows. Reversed edges have the data of the edges that they reverse, and self loops those that
/// PartitionGraphOptions names.
void read_columns(GraphSource& source, const DatasetOptions& options, GraphData& graph);

}}  // namespace sar
