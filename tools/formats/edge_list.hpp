// SPDX-License-Identifier: MIT

/// Local. Edge lists, which are texts with one edge a line: from bytes to edges.
#pragma once

#include "edge_list_format.hpp"
#include "line_blocks.hpp"

#include <sar/config.hpp>

#include <string_view>
#include <vector>

namespace sar::formats {

/// Edges with integers for nodes.
struct IntegerEdges {
  std::vector<Index> src;
  std::vector<Index> dst;
  std::vector<double> data;  ///< EdgeListFormat::num_data for each edge
  void clear();
};
/// Edges whose nodes are any words, which are parts of the text.
struct KeyedEdges {
  std::vector<std::string_view> ends;  ///< source and destination in turn
  std::vector<double> data;
  void clear();
};

/// Reads whole lines into `edges`, which are cleared. Integers may be written as 2.0; the first id is
/// subtracted from them. Throws LineError; NotAnInteger for a node that is a word, or an integer beyond 63
/// bits.
TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, IntegerEdges& edges);
TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, KeyedEdges& edges);

}  // namespace sar::formats
