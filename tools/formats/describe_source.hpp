// SPDX-License-Identifier: MIT

/// What is in a graph, for a person who looks at it before a long run.
#pragma once

#include <sar/graph/data/graph_source.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar::formats {

/// Collective. Returns a line for the nodes (edges) of each type and for each of their fields: duplicates,
/// self loops, nodes without edges, least and largest values, NaN, unlabelled nodes, also those in masks.
/// `names` as DatasetOptions::fields. Reads everything.
std::vector<std::string> describe_source(GraphSource& source,
                                         const std::map<std::string, std::string>& names = {});

}  // namespace sar::formats
