// SPDX-License-Identifier: MIT

/// Features of nodes made of data of their in-edges, for graphs without features of nodes.
///
/// Room tools/formats/rows: Rows that a program reads beside a graph: features made of data of edges, pairs
/// of nodes to score.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <string>

namespace sar::formats {

/// Collective. Returns the mean of a field of the edges over the in-edges of each node of this rank, [nodes,
/// F]; 0 for a node without in-edges. Reverse edges have the data of their edges; self loops that were added
/// have none and do not count. Throws InputError, the same on every rank, if there is no such field, expected
/// for `option`, or a value is not finite.
Tensor edge_means(const Communicator& comm, const std::string& field, const std::string& option,
                  GraphSource& source, const NodeData& data);

/// Collective. The same of a partition with one type of nodes and edges, whose fields have been read.
Tensor edge_means(const Communicator& comm, const std::string& field, const std::string& option,
                  const GraphData& partition);

}  // namespace sar::formats
