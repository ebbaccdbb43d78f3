// SPDX-License-Identifier: MIT

/// One step of a problem: a random operation on a relation's graph, or on a message flow graph of it, in the
/// library and in the reference.
#pragma once

#include "stress/problem.hpp"

#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/nn/modules/node_features.hpp>

#include <memory>

namespace sar::test {

struct Step {
  Problem& problem;
  const Relation& relation;
  const Graph& graph;                           ///< the relation's, or a message flow graph
  const DenseGraph& dense;                      ///< the same
  std::shared_ptr<const MessageFlowGraph> mfg;  ///< null: the whole graph
  Both src, dst;  ///< rows at both ends; one kind: ours are the first ones of src
  Draw& draw = problem.draw;

  Both edge_rows(Index cols, double low = -1, double high = 1);
  [[nodiscard]] Reduce reduce() { return draw.one_of({Reduce::sum, Reduce::mean, Reduce::max, Reduce::min}); }
  /// Given once or for each end, where the graph leaves the choice.
  [[nodiscard]] NodeFeatures features(bool pair) const {
    return pair ? NodeFeatures(src.ours, dst.ours) : NodeFeatures(src.ours);
  }
  [[nodiscard]] bool draw_pair() { return !dense.one_kind || draw.chance(0.3); }
};

/// A random operation: rows of the destinations.
Both apply_operation(Step& step);
/// A random layer of nn/.
Both apply_layer(Step& step);

/// x W^T + b with new parameters.
Both projected(Problem& problem, const Both& x, Index cols);

}  // namespace sar::test
