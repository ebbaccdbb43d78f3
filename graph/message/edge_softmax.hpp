// SPDX-License-Identifier: MIT

/// Softmax over the edges of a node.
#pragma once

#include <sar/graph/kernels/message_op.hpp>
#include <sar/graph/message/graph.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. y_e = exp(x_e - m) / sum exp(x_e' - m), over the edges e' that share e's destination
/// (source), m their maximum over all its edges; each column by itself. x [local edges, ...], as
/// dgl.nn.functional.edge_softmax. Gradient y (g - sum(g y)); keeps y. Communication: none for dst; for
/// src, the halo rows' maxima and sums [halo rows, ...] travel to the owners and back. Throws, the same on
/// every rank, ShapeError for another number of rows than local edges.
[[nodiscard]] Variable edge_softmax(const Graph& graph, const Variable& x, NormBy norm_by = NormBy::dst);
}}  // namespace sar
