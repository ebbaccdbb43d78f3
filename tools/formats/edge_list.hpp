/// Edge lists as text: one edge a line. The local part: from bytes to edges.
#pragma once

#include "line_blocks.hpp"

#include <sar/config.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

/// How the lines of an edge list are to be read.
struct EdgeListFormat {
  char separator = ' ';    ///< ' ': any number of blanks
  Index data_columns = 0;  ///< numbers behind source and destination
  bool ignore_data = false;
  TextPosition begin;  ///< of the first line behind the header
};

/// From the first lines of the text; `whole`: they are all. What is given is not guessed. Separators that are
/// guessed: the first of tab, comma and semicolon that all lines have, or blanks. A first line with something
/// that is no number, where all others have one, is a header, and so is one that names the ends "source",
/// "src", "from", ... Nothing when more lines are needed to tell.
std::optional<EdgeListFormat> guess_edge_list_format(std::string_view beginning, bool whole,
                                                     std::optional<char> separator,
                                                     std::optional<bool> header, bool ignore_data);

/// Edges with integers for nodes.
struct IntegerEdges {
  std::vector<Index> src;
  std::vector<Index> dst;
  std::vector<double> data;  ///< data_columns for each edge
  void clear();
};
/// Edges with any words for nodes: parts of the text.
struct KeyedEdges {
  std::vector<std::string_view> ends;  ///< source and destination in turn
  std::vector<double> data;
  void clear();
};

/// Reads whole lines into `edges`, which are cleared. Throws LineError; NotAnInteger for a node that is not
/// an integer of 63 bits.
TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, IntegerEdges& edges);
TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, KeyedEdges& edges);

}  // namespace sar::formats
