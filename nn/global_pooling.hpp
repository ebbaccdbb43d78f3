/// Readouts of the whole graph, over the nodes of all ranks: DGL's dgl.nn.SumPooling, AvgPooling, MaxPooling
/// and GlobalAttentionPooling for a graph that is not a batch.
///
/// Each takes feat [local nodes, D] and returns [1, D], the same bits on every rank: a value in the sense of
/// nn/reductions.hpp, which goes on through a network and ends in a loss. A rank may have no nodes. Results
/// and gradients are the same for every number of ranks, to rounding. Collective, also in the backward pass.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/module.hpp>
#include <sar/nn/row_function.hpp>

namespace sar::inline SAR_PRECISION {

///     y_j = sum_i x_ij
///
/// Throws ShapeError unless feat is [local nodes, D]. Collective.
class SumPooling : public Module {
 public:
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat) const;
};

///     y_j = sum_i x_ij / N                for the N nodes of all ranks
///
/// Errors as above. Collective.
class AvgPooling : public Module {
 public:
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat) const;
};

///     y_j = max_i x_ij
///
/// The gradient goes to the first node that has the maximum, on the lowest rank that has one. A NaN is the
/// maximum. Errors as above. Collective.
class MaxPooling : public Module {
 public:
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat) const;
};

/// Li et al., arXiv 1511.05493:
///
///     a_i = exp(gate(x_i)) / sum_k exp(gate(x_k))        y = sum_i a_i f(x_i)
///
/// over the nodes of all ranks. Parameters: those of the networks, under "gate_nn" and "feat_nn". Errors as
/// above, and ShapeError when gate_nn returns anything but [local nodes, 1]. Collective.
class GlobalAttentionPooling : public Module {
 public:
  /// gate_nn maps rows to one number each; feat_nn, which may be absent, is f. Throws InputError without a
  /// gate_nn.
  explicit GlobalAttentionPooling(RowFunction gate_nn, RowFunction feat_nn = {});

  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat) const;
  /// The coefficients a, [local nodes, 1] (DGL's get_attention). Collective.
  [[nodiscard]] Variable attention(const GraphShardManager& graph, const Variable& feat) const;

 private:
  RowFunction gate_nn_, feat_nn_;
};

}  // namespace sar
