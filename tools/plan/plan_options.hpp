/// The command line of `plan`: that of a training, and the machine that it shall run on.
#pragma once

#include "train/train_options.hpp"

#include <string>

namespace sar::tools {

/// What a worker has. Rates are per second.
struct Machine {
  int ranks = 1;            ///< workers
  double cores = 1;         ///< of a worker
  double link_bytes = 0;    ///< of the network, in each direction, for a worker
  double latency = 20e-6;   ///< seconds that a message takes besides its bytes
  double efficiency = 0.8;  ///< of more cores than the rates were measured with
  double memory = 0;        ///< bytes of a worker; 0: not said
};

struct PlanOptions {
  TrainOptions train;  ///< of the training that is planned
  Machine machine;
  Index edges = 0;                         ///< of the graph; 0: as the graph has, or as its degree says
  double halo_fraction = -1;               ///< halo nodes for each node of a part; negative: of the parts
  Index scale_nodes = 0, scale_edges = 0;  ///< sizes of a graph of the same shape; 0: of the given one
  std::string rates_file, json_file;       ///< empty: none
};

/// Adds the options of `train` and those of the plan.
void add_options(CLI::App& app, PlanOptions& o);

}  // namespace sar::tools
