/// Loading a graph with any types from its source.
#pragma once

#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>

namespace sar::inline SAR_PRECISION {

/// The source's graph with all its types and all its data, partitioned over the ranks of its communicator.
/// Each type of nodes is divided into parts of about the same size; the options of features and fields are
/// not used. The edges are transformed as partition_graph does. Collective. Throws InputError, the same on
/// every rank, as partition_graph.
GraphData load_graph_data(GraphSource& source, const DatasetOptions& options = {});

}  // namespace sar
