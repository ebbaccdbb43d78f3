// SPDX-License-Identifier: MIT

/// Local. Matrix Market files, which are sparse matrices as text: from bytes to edges.
#pragma once

#include "line_blocks.hpp"

#include <sar/config.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace sar::formats {

/// What these lines say: `%%MatrixMarket matrix coordinate real|integer|pattern
/// general|symmetric|skew-symmetric`, and the line with the sizes.
struct MatrixMarketHeader {
  enum class Symmetry : int { general, symmetric, skew };
  bool has_values = false;
  Symmetry symmetry = Symmetry::general;
  Index size = 0;      ///< rows and columns
  Index entries = 0;   ///< that the file has
  TextPosition begin;  ///< of the entries
};

/// Reads the format from the first lines of a text; `whole` says that there are no others. Returns nothing
/// when the sizes are not among them. Throws LineError.
std::optional<MatrixMarketHeader> parse_matrix_market_header(std::string_view beginning, bool whole);

/// Entry (i, j) is the edge i -> j; in a symmetric or skew-symmetric matrix the edge j -> i follows it at
/// once.
struct MatrixEdges {
  std::vector<Index> src;
  std::vector<Index> dst;
  std::vector<double> weight;  ///< empty without values
  Index entries = 0;           ///< of all blocks so far
};

/// Parses whole lines and replaces the contents of `edges` by their edges. Returns the numbers of lines and
/// edges (TextCounts::rows). Throws LineError.
TextCounts parse_matrix_entries(std::string_view text, const MatrixMarketHeader& header, MatrixEdges& edges);

}  // namespace sar::formats
