// SPDX-License-Identifier: MIT

/// Sizes of a graph and of its parts: read from a partition directory, counted in a dataset partitioned for
/// this purpose, or given as numbers.
#pragma once

#include "plan_options.hpp"
#include "source_widths.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/partition_graph.hpp>

#include <string>
#include <vector>

namespace sar::tools {

/// Sizes of one part; estimates need not be whole numbers.
struct PartShape {
  double nodes = 0, in_edges = 0;
  double cut_edges = 0;   ///< in-edges from other parts
  double halo_nodes = 0;  ///< distinct sources of the cut edges
  double neighbors = 0;   ///< other parts that the cut edges come from
};

/// Returns one part whose sizes are those of all parts, combined one after another from 0 on.
PartShape combined(const std::vector<PartShape>& parts, FunctionRef<double(double, double)> combine);

/// Returns the expected number of distinct end nodes among `nodes` nodes when `cut_edges` edges end at random
/// ones:
///     nodes * (1 - exp(-cut_edges / nodes)).
/// For the nodes of a part it is the number of rows that the remote shard lists (8 bytes each); for all other
/// nodes it is the halo of a random partition. For the other parts in the place of nodes it is the number of
/// parts that the halo is in.
double listed_rows(double nodes, double cut_edges);

struct GraphShape {
  std::string name;
  double nodes = 0, edges = 0;
  Widths widths = {};
  std::vector<PartShape> parts = {};  ///< one for each rank
  std::string source = {};            ///< says where the sizes come from, for the report
};

/// Collective. Returns the sizes of the graph of the options, with one part per rank. Throws InputError,
/// the same on every rank, for more ranks than nodes, for a partition that contradicts the options, and
/// for what open_source refuses.
GraphShape shape_of(const Communicator& comm, const PlanOptions& o);

/// Sets the sizes of the graph and of its parts.
void set_report(GraphShape& shape, const PartitionReport& report);

/// Returns the same graph in `ranks` parts of equal size, with a cut extrapolated from `shape`.
GraphShape divided(const GraphShape& shape, int ranks);

}  // namespace sar::tools
