// SPDX-License-Identifier: MIT

/// Continuous-filter convolution of SchNet.
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/row_function.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// Returns log(1 + exp(x)) - log 2, computed without overflow.
[[nodiscard]] Variable shifted_softplus(Variable x);

/// SchNet's convolution, Schuett et al., arXiv 1706.08566; equivalent to dgl.nn.CFConv:
///
///     y_v = out(sum_{u -> v} node(x_u) * edge(e))
///
///     node(x) = W_n x + b_n    edge(e) = s(W_2 s(W_1 e + b_1) + b_2)    out(h) = s(W_o h + b_o)
///
/// with the shifted softplus s. A node without in-edges yields out(0).
///
/// Parameters, as in Linear, each with weight and bias: project_edge.0 [hidden, edge_in], project_edge.2
/// [hidden, hidden], project_node [hidden, node_in], project_out.0 [out, hidden]. Filters are computed for
/// options().edge_chunk edges at a time. Collective: one update_all.
class CFConv : public Module {
 public:
  /// Throws InputError unless all widths are positive.
  CFConv(Index node_in_feats, Index edge_in_feats, Index hidden_feats, Index out_feats, Generator& gen);

  /// feat [local sources, node_in], edge_feats [local edges, edge_in] -> [local destinations, out]. The graph
  /// may be bipartite. Throws ShapeError if shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat,
                                    const Variable& edge_feats) const;

 private:
  Index node_in_feats_, edge_in_feats_;
  std::shared_ptr<Sequential> project_edge_;  // shared with messages on the tape
  Linear project_node_;
  Sequential project_out_;
};

}}  // namespace sar
