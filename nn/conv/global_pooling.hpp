// SPDX-License-Identifier: MIT

/// Readouts over all nodes of all ranks: the equivalents of dgl.nn.SumPooling, AvgPooling, MaxPooling and
/// GlobalAttentionPooling. SumPooling, AvgPooling and MaxPooling also read out each sample of a batch
/// (below).
///
/// Of a single graph, each maps feat [local nodes, D] to [1, D], with the same bits on every rank: a
/// replicated value as nn/modules/reductions.hpp defines it, to be used by further layers and a loss. A rank
/// may have no nodes. Results have the same bits on any number of ranks, and gradients too if the loss is
/// that of one rank's copy; as the mean over all copies it depends on their number by rounding. Collective,
/// also in the backward pass.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/message.hpp>
#include <sar/graph/sampling/graph_samples.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

namespace sar { inline namespace SAR_PRECISION {

// Readouts of graph samples: one row for each sample, from the rows of its nodes.

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

/// Collective. Sum of the rows:
///
///     y_j = sum_i x_ij
///
/// Throws ShapeError unless feat is [local nodes, D].
class SumPooling : public Module {
 public:
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat) const;
  /// Local. The same for each sample of a batch: [samples of this rank, D] (readout_nodes).
  [[nodiscard]] Variable operator()(const SampleBatch& batch, const Variable& feat) const {
    return readout_nodes(batch, feat, Reduce::sum);
  }
};

/// Collective. Mean of the rows of all N nodes of all ranks:
///
///     y_j = sum_i x_ij / N
///
/// Errors as above.
class AvgPooling : public Module {
 public:
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat) const;
  /// Local. The same for each sample of a batch: [samples of this rank, D] (readout_nodes).
  [[nodiscard]] Variable operator()(const SampleBatch& batch, const Variable& feat) const {
    return readout_nodes(batch, feat, Reduce::mean);
  }
};

/// Collective. Maximum of the rows:
///
///     y_j = max_i x_ij
///
/// The gradient goes to the node with the maximum that has the lowest original id. NaN counts as the maximum.
/// Errors as above.
class MaxPooling : public Module {
 public:
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat) const;
  /// Local. The same for each sample of a batch: [samples of this rank, D] (readout_nodes).
  [[nodiscard]] Variable operator()(const SampleBatch& batch, const Variable& feat) const {
    return readout_nodes(batch, feat, Reduce::max);
  }
};

/// Collective. Attention over the nodes of all ranks, Li et al., arXiv 1511.05493:
///
///     a_i = exp(gate(x_i)) / sum_k exp(gate(x_k))
///
///     y = sum_i a_i f(x_i)
///
/// Parameters: those of the two networks, under "gate_nn" and "feat_nn". Errors as above, and ShapeError if
/// gate_nn does not return [local nodes, 1].
class GlobalAttentionPooling : public Module {
 public:
  /// gate_nn maps each row to one value; feat_nn is f, by default the identity. Throws InputError without a
  /// gate_nn.
  explicit GlobalAttentionPooling(RowFunction gate_nn, RowFunction feat_nn = {});

  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat) const;
  /// Collective. Returns the coefficients a, [local nodes, 1] (DGL's get_attention).
  [[nodiscard]] Variable attention(const Graph& graph, const Variable& feat) const;

 private:
  RowFunction gate_nn_, feat_nn_;
};

}}  // namespace sar
