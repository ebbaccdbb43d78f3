// SPDX-License-Identifier: MIT

/// What the weights of other libraries expect of the graph: how a GCN normalizes messages, and self loops.
#pragma once

#include "options/train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/models/weight_file.hpp>

#include <string>
#include <vector>

namespace sar::tools {

/// Collective. Sets the norm of a GCN by the names of --init-weights, unless --gcn-norm says it. Throws
/// InputError as gcn_norm_of_weights().
void choose_gcn_norm(const Communicator& comm, TrainOptions& o);

/// Collective. Normalizes the edge weights of the graph before message flow graphs are made from it; with
/// `of_one`, weights of 1 if it has none.
void keep_gcn_norm(const Graph& graph, const ModelDescription& model, bool of_one);

/// Collective. Returns lines that say which norm `chosen` has in place of the `given` options, and where
/// the graph differs from what the layers of the weights' library would make of it. The same on every rank.
std::vector<std::string> graph_notes(const Graph& graph, const WeightFile& weights,
                                     const ModelDescription& given, const ModelDescription& chosen);

}  // namespace sar::tools
