// SPDX-License-Identifier: MIT

/// For the tests of formats: writing files, and a whole source in original ids.
#pragma once

#include "graph/data/dataset_files.hpp"

#include <sar/graph/data/graph_source.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sar::test {

/// As it is. Local.
void write_file(const std::string& path, const std::string& content);
/// The text packed by gzip, as one member or cut into several. Local.
std::string gzip(const std::string& text, int members = 1);

/// A graph as a source has it: edges in the order of their ids, rows in the order of nodes and edges.
struct WholeSource {
  Index num_nodes = 0;
  std::vector<std::pair<Index, Index>> edges;
  std::map<std::string, std::vector<double>> node_data;
  std::map<std::string, std::vector<double>> edge_data;
  bool operator==(const WholeSource&) const = default;
};

/// Checks on the way that each edge is on one rank, and that rows come in the order in which they are asked
/// for. Collective.
WholeSource gather_source(GraphSource& source);

}  // namespace sar::test
