/// The widths that a model takes from a graph: of its features, and the number of classes.
#pragma once

#include <sar/graph/data/graph_source.hpp>

#include <map>
#include <string>

namespace sar::tools {

struct Widths {
  Index features = 0, classes = 0;  ///< 0: the graph does not say
};

/// Collective. The width of the field features (or feat), and the largest number in labels (or label) + 1.
/// Widths that are given stay. `names` as DatasetOptions::fields.
Widths complete_widths(Widths given, GraphSource& source,
                       const std::map<std::string, std::string>& names = {});

}  // namespace sar::tools
