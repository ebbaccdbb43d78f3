// SPDX-License-Identifier: MIT

/// How a GCN normalizes messages, as a description names it and as the weights of other libraries want it.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/models/weight_names.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns the norm that a description calls degrees (both), weights or in_weights; empty: degrees.
/// Throws InputError for another name.
[[nodiscard]] GraphConvNorm graph_conv_norm(const std::string& gcn_norm);

/// Collective. Returns the gcn_norm of the network whose weights a file has: the one in its description, if
/// it has one, or in_weights if a tensor has the name of the weight in PyG's GCNConv, lin.weight; otherwise
/// empty, since DGL's GraphConv and the GCNConv of PyG 1.x have the same names. Rank 0 reads the file.
/// Throws InputError on every rank for an unreadable or damaged file.
[[nodiscard]] std::string gcn_norm_of_weights(const Communicator& comm, const std::string& path,
                                              const WeightNames& names = {});

/// Numbers of nodes of the whole graph.
struct SelfLoopCounts {
  Index none = 0;     ///< without a self loop
  Index several = 0;  ///< with more than one
};

/// Collective. Counts self loops, of which PyG's GCNConv and attention layers want one at each node. The
/// graph has the same sources and destinations.
[[nodiscard]] SelfLoopCounts count_self_loops(const Graph& graph);
}}  // namespace sar
