// SPDX-License-Identifier: MIT

/// The data of an edge type, by its name.
#pragma once

#include <sar/graph/data/graph_data.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace sar::test {

/// Returns the edge type of this name or canonical name.
inline const EdgeTypeData& edge_type_of(const GraphData& graph, const std::string& name) {
  const auto found = std::ranges::find_if(graph.edge_types, [&](const EdgeTypeData& type) {
    return type.name == name || type.canonical_name() == name;
  });
  REQUIRE(found != graph.edge_types.end());
  return *found;
}

}  // namespace sar::test
