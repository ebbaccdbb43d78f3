// SPDX-License-Identifier: MIT

/// Measures time and memory per node and per edge on this machine, by a short training of the model on a
/// small generated graph of the same shape. The training runs the code of `train`.
#pragma once

#include "plan_rates.hpp"
#include "source_widths.hpp"
#include "train/options/train_options.hpp"

#include <sar/comm/communicator.hpp>

#include <string>

namespace sar::tools {

/// Returns one line with the model and everything else that the rates depend on.
std::string describe_model(const TrainOptions& o, const Widths& widths);

/// Local. Measures what is counted in bytes and numbers, by trainings of this process alone on at most
/// `nodes` nodes of in-degree `degree`.
Rates measure_memory(const TrainOptions& o, const Widths& widths, double nodes, double degree);

/// Collective. Measures the rates by trainings on at most `nodes` nodes of in-degree `degree`, with sparse
/// features if some are stored: each rank alone (about two seconds), then all ranks together, with the same
/// parts, with the same parts in small stages, and with very small parts. The additional time of the joint
/// trainings is the cost of the exchange. On one rank the exchange is estimated as three copies of each
/// received byte and one copy of each byte that a stage adds to.
Rates measure_rates(const Communicator& comm, const TrainOptions& o, const Widths& widths, double nodes,
                    double degree);

/// Collective. Reads the rates from `file`; if there is no such file, measures the rates and writes them
/// there. An empty name means: measure. All ranks get the rates of rank 0. Throws InputError, the same on
/// every rank, if the file has no rates or rates of another model, or cannot be written.
Rates read_or_measure(const Communicator& comm, const std::string& file, const TrainOptions& o,
                      const Widths& widths, double nodes, double degree);

}  // namespace sar::tools
