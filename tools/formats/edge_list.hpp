// SPDX-License-Identifier: MIT

/// Local. Edge lists, which are texts with one edge a line: how one is to be read, by its first lines, and
/// from bytes to edges.
#pragma once

#include "column_roles.hpp"
#include "edge_chunks.hpp"
#include "first_lines.hpp"
#include "source_options.hpp"
#include "text.hpp"

#include <sar/config.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

/// Without columns there are no edges.
struct EdgeListFormat : TextTable {
  Index header_line = -1;           ///< from 0; -1: there is no header
  /// Behind its nodes an edge has a Python dictionary, as NetworkX writes it; of it, "weight" is read.
  bool has_dictionaries = false;
  Index first_id = 0;                 ///< of nodes that are integers
  bool may_be_names = false;          ///< integers that are not below 2^62 or begin with 0 are names
  std::vector<std::string> warnings;  ///< what may be meant in another way

  /// Local. "source: column 1 'from', target: column 2 'to', weight: none; separator: comma; header: line
  /// 1".
  [[nodiscard]] std::string describe() const;
};

/// Detects the options that are not given from the first lines of a text. The
/// separator is that of guess_separator. The first line is a header if it has the names of columns
/// (header_names), or text in a column in which all other lines have a number or the name of a split; and so
/// is a comment just before the first line that names the columns. The columns have the roles of
/// column_roles. Throws LineError if a line could be a header or an edge, and for columns whose meaning the
/// names do not decide.
EdgeListFormat guess_edge_list_format(const FirstLines& first, const SourceOptions& options);

/// Edges whose nodes are any words, which are parts of the text.
struct KeyedEdges {
  std::vector<std::string_view> ends;  ///< source and destination in turn
  KeptTexts kept;                      ///< those with quotes, which are parts of none
  std::vector<Index> lines;            ///< of the edges
  Array<double> data;

  void clear() {
    ends.clear();
    kept.clear();
    lines.clear();
    data.clear();
  }
};

/// Reads whole lines into `edges`, which are cleared. Integers may be written as 2.0; the first id is
/// subtracted from them. Throws LineError; NotAnInteger for a node that is a word, or an integer beyond 63
/// bits, and as EdgeListFormat::may_be_names says.
TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, EdgeChunk& edges);
TextCounts parse_edges(std::string_view text, const EdgeListFormat& format, KeyedEdges& edges);

}  // namespace sar::formats
