// SPDX-License-Identifier: MIT

/// Options of a SaintLoader.
#pragma once

#include <sar/config.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// How the nodes of a subgraph are drawn.
enum class SaintMethod {
  node,  ///< each node by itself, in proportion to its out-degree
  edge,  ///< the ends of edges u -> v, in proportion to 1 / out-degree of u + 1 / in-degree of v
  walk   ///< random walks over in-edges, from roots that are equally likely
};

/// Options of a SaintLoader; the same on every rank.
struct SaintOptions {
  SaintMethod method = SaintMethod::node;
  /// Draws of a batch, of all ranks together: nodes, edges or roots, with replacement. A batch has fewer
  /// nodes where draws meet.
  Index draws = 1000;
  Index walk_length = 2;  ///< walk: steps of each walk
  /// Batches of an epoch. 0: as many as draw about as many nodes as the graph has.
  Index batches = 0;
  /// edge, walk: coefficients are counted in subgraphs drawn beforehand, which have so many nodes for each
  /// node of the graph. Those of the method node are known without counting.
  Index coverage = 50;
  /// Divides messages by the probability of their edges, and keeps the degrees of the whole graph: for layers
  /// that add weighted messages. Otherwise messages and degrees are those of the subgraph: for attention,
  /// maxima and layers that ignore edge weights.
  bool scale_messages = true;
  std::uint64_t seed = 0;
};

}}  // namespace sar
