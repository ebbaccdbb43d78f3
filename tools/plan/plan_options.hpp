// SPDX-License-Identifier: MIT

/// The options of `plan`: those of `train`, and a description of the machine.
#pragma once

#include "train/options/train_options.hpp"

#include <string>

namespace sar::tools {

/// The machine: what each rank has. Rates are per second.
struct Machine {
  int ranks = 1;            ///< of the training
  double cores = 1;         ///< cores of a rank
  double link_bytes = 0;    ///< bandwidth of a rank's network link in each direction
  double latency = 20e-6;   ///< seconds of a message, without its bytes
  double efficiency = 0.8;  ///< parallel efficiency when there are more cores than in the measurement
  double memory = 0;        ///< bytes of memory of a rank; 0: unknown
  double memory_rate = 0;   ///< bytes of memory read or written per second; 0: as measured
};

struct PlanOptions {
  TrainOptions train;  ///< the options of the planned training
  Machine machine;
  Index edges = 0;                         ///< number of edges; 0: from the graph, or from its degree
  double halo_fraction = -1;               ///< halo nodes per node of a part; negative: counted in the parts
  Index scale_nodes = 0, scale_edges = 0;  ///< sizes to scale the graph to; 0: not scaled
  std::string rates_file, json_file;       ///< empty: none
};

/// Adds the options of `train` and those of `plan`.
void add_options(CLI::App& app, PlanOptions& o);

}  // namespace sar::tools
