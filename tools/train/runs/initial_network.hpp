// SPDX-License-Identifier: MIT

/// Whether weights that a run begins with are of the same network, on data that were prepared equally.
#pragma once

#include "train/options/train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/nn/modules/module.hpp>

#include <map>
#include <string>

namespace sar::tools {

/// Returns what weights need to be used again, for the metadata of their file: "train.--activation" -> "elu".
std::map<std::string, std::string> record_of_network(const TrainOptions& o);

/// Collective. Compares what a file of weights or a checkpoint says with this run. Throws InputError if
/// another network would only predict; otherwise, and for other data, rank 0 prints a warning.
void compare_network(const Communicator& comm, const std::string& path, bool is_checkpoint,
                     const Module& model, const TrainOptions& o);

}  // namespace sar::tools
