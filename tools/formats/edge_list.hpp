/// Edge lists, which are texts with one edge a line: from bytes to edges. Local.
#pragma once

#include "line_blocks.hpp"
#include "source_options.hpp"

#include <sar/config.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

/// Columns that are found by their names in the header.
enum class EdgeField { split, labels, type, train_mask, val_mask, test_mask, weight };
constexpr std::size_t num_edge_fields = 7;

/// How the lines of an edge list are to be read.
struct EdgeListFormat {
  char separator = ' ';    ///< ' ': any number of blanks
  Index data_columns = 0;  ///< behind source and destination
  /// Which of these has an EdgeField; -1: none. "train", "val", "valid" and "test" in a split are 0, 1, 1, 2.
  std::array<Index, num_edge_fields> named{-1, -1, -1, -1, -1, -1, -1};
  std::array<bool, num_edge_fields> is_given{};  ///< its name is that of SourceOptions::fields
  bool ignore_data = false;
  TextPosition begin;  ///< of the first line behind the header
};

/// Detects the options that are not given from the first lines of a text; `whole`: these are all lines. The
/// separator is the first of tab, comma and semicolon that all lines contain, or else blanks. The first line
/// is a header if it contains text in a column in which all other lines have a number or the name of a split,
/// or if a column is named "source", "src", "from", ... Returns nothing if more lines are needed. Throws
/// LineError for a header with more fields than the first edge, and if two columns name the same EdgeField.
std::optional<EdgeListFormat> guess_edge_list_format(std::string_view beginning, bool whole,
                                                     const SourceOptions& options);

/// What the edge data of a column with an EdgeField are called.
std::string name_of(EdgeField field, const EdgeListFormat& format, const SourceOptions& options);

/// Edges with integers for nodes.
struct IntegerEdges {
  std::vector<Index> src;
  std::vector<Index> dst;
  std::vector<double> data;  ///< data_columns for each edge
  void clear();
};
/// Edges whose nodes are any words, which are parts of the text.
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
