// SPDX-License-Identifier: MIT

/// Data of the edges that is spread over the ranks by the ids of the edges.
#pragma once

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/message/graph.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. The part of data given per edge id that belongs to this rank's edges: [local edges, ...] in
/// edge order, as Graph::local_edge_rows, but no rank has the rows of all edges. Rank p has
/// those of the ids that `ids` gives it as `mine`, [ids.num_nodes(p), ...]. A rank asks for about 4 MiB of
/// rows at a time. Throws ShapeError when `mine` has not the rows that `ids` says or the ranks' rows differ
/// in width, and InputError when an edge id has no row or the graph has dropped its ids; the same on every
/// rank.
Tensor fetch_edge_rows(const Graph& graph, const PartitionBook& ids, const Tensor& mine);
}}  // namespace sar
