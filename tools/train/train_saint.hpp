// SPDX-License-Identifier: MIT

/// Batches of GraphSAINT: the options of their loader, and what their losses are divided by.
#pragma once

#include "options/train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/graph/sampling/saint_loader.hpp>

#include <span>

namespace sar::tools {

/// Returns the options of the loader. Messages are divided by the probabilities of their edges where the
/// layers add weighted messages.
SaintOptions saint_options(const TrainOptions& o);

/// Collective. Returns by what --loss divides the sum over all training nodes: their number, the sum of the
/// class weights of their labels, or the number of their targets.
double loss_terms(const Communicator& comm, const NodeData& data, std::span<const double> class_weights);

}  // namespace sar::tools
