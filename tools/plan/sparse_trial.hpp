// SPDX-License-Identifier: MIT

/// Sparse features of the graph that `plan` trains on.
#pragma once

#include <sar/graph/data/graph_data.hpp>

namespace sar::tools {

/// Local. Replaces the features of `data` by sparse rows of `columns` values, of which each row stores
/// `stored`, at least one. They are at equal distances, and the first one depends on the node.
void make_features_sparse(NodeData& data, Index columns, double stored);

}  // namespace sar::tools
