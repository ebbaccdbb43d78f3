// SPDX-License-Identifier: MIT

/// Readouts of graph samples: one row for each sample, from the rows of its nodes.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/graph/message/message.hpp>
#include <sar/graph/samples/sample_batch.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns the reduction over the nodes of each sample g of this rank, [samples, D], for feat [local
/// nodes, D] (dgl.readout_nodes):
///
///     sum        y_gj = sum_{v in g} x_vj
///
///     mean       y_gj = sum_{v in g} x_vj / n_g
///
///     max, min   y_gj = max_{v in g} x_vj, whose gradient goes to the first node that has it
///
/// A sample without nodes has zeros. NaN counts as the maximum and as the minimum. Sums are added in the
/// order of the nodes, so that the bits depend neither on batches nor on ranks. Throws ShapeError for other
/// shapes.
[[nodiscard]] Variable readout_nodes(const SampleBatch& batch, const Variable& feat,
                                     Reduce reduce = Reduce::sum);

}}  // namespace sar
