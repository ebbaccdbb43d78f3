/// How large a graph and its parts are: of a partition directory, of a dataset that is divided for this, or
/// of numbers alone.
#pragma once

#include "plan_options.hpp"

#include <sar/comm/communicator.hpp>

#include <string>
#include <vector>

namespace sar::tools {

/// What a worker has. Not whole numbers where they are estimated.
struct PartShape {
  double nodes = 0, in_edges = 0;
  double cut_edges = 0;   ///< in-edges from other parts
  double halo_nodes = 0;  ///< nodes of other parts that they come from, each counted once
};

struct GraphShape {
  std::string name;
  double nodes = 0, edges = 0;
  Index features = 0, classes = 0;
  std::vector<PartShape> parts = {};  ///< one for each worker
  std::string source = {};            ///< where the parts' sizes come from, for people
};

/// The graph of the options, in as many parts as there are workers. Collective. Throws InputError, the same
/// on every rank, for more workers than nodes, for a partition that does not go with the options, and as
/// open_source.
GraphShape shape_of(const Communicator& comm, const PlanOptions& o);

/// The same graph in `ranks` parts of equal size, with the cut that `shape` lets expect.
GraphShape divided(const GraphShape& shape, int ranks);

}  // namespace sar::tools
