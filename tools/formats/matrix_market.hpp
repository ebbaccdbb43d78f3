// SPDX-License-Identifier: MIT

/// Matrix Market files, which are sparse matrices as text, as sources of graphs.
#pragma once

#include "edge_chunks.hpp"
#include "file_source.hpp"
#include "line_blocks.hpp"
#include "source_options.hpp"

#include <memory>
#include <string>
#include <string_view>

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

/// Local. Reads the format from the first lines of a text. Throws LineError, also when the sizes are not
/// among them.
MatrixMarketHeader parse_matrix_market_header(std::string_view beginning);

/// Entry (i, j) is the edge i -> j; in a symmetric or skew-symmetric matrix the edge j -> i follows it at
/// once.
struct MatrixEdges : EdgeChunk {
  Index entries = 0;  ///< of all blocks so far
};

/// Local. Parses whole lines and replaces the contents of `edges` by their edges. Returns the numbers of
/// lines and edges (TextCounts::rows). Throws LineError.
TextCounts parse_matrix_entries(std::string_view text, const MatrixMarketHeader& header, MatrixEdges& edges);

/// A square sparse matrix: node i is row i and column i (from 0), entry (i, j) the edge i -> j, its value
/// edge data "weight", float64. Edges are numbered in the order of the file; of an entry of a symmetric or
/// skew-symmetric matrix off the diagonal, the edge j -> i comes next. Reads everything. Collective; throws
/// InputError, the same on every rank.
std::unique_ptr<GraphSource> open_matrix_market(const Communicator& comm, const std::string& path,
                                                const SourceOptions& options);

}  // namespace sar::formats
