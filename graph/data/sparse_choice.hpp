// SPDX-License-Identifier: MIT

/// Which fields of nodes become sparse rows.
#pragma once

#include <sar/core/files/data_array.hpp>
#include <sar/graph/data/dataset_options.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns whether the row of this node is counted for the choice: of N nodes at most 4,096 at even
/// distances of ids, so that the choice is the same for every number of ranks.
[[nodiscard]] bool is_sampled(Index node, Index num_nodes);

/// Local. Returns whether a field becomes sparse rows if `stored` values of `rows` sampled rows are not 0. It
/// does with `automatic` if a row has at least 64 columns and at most an eighth of the values are not 0, and
/// with `yes` if it has at least 2 columns.
[[nodiscard]] bool becomes_sparse(SparseFeatures sparse, const DataField& field, Index rows, Index stored);

}}  // namespace sar
