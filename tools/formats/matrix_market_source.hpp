// SPDX-License-Identifier: MIT

/// Matrix Market files as sources of graphs.
#pragma once

#include "file_source.hpp"
#include "source_options.hpp"

#include <string>

namespace sar::formats {

/// A square sparse matrix: node i is row i and column i (from 0), entry (i, j) the edge i -> j, its value
/// edge data "weight", float64. Edges are numbered in the order of the file; of an entry of a symmetric or
/// skew-symmetric matrix off the diagonal, the edge j -> i comes next.
class MatrixMarketSource : public FileSource {
 public:
  /// Reads everything. Collective; throws InputError, the same on every rank.
  MatrixMarketSource(const Communicator& comm, const std::string& path, const SourceOptions& options);
};

}  // namespace sar::formats
