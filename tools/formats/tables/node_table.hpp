// SPDX-License-Identifier: MIT

/// Tables with a row for each node, as text.
#pragma once

#include "formats/file_source.hpp"
#include "formats/source_options.hpp"

#include <string>

namespace sar::formats {

/// What a table gives a graph.
struct NodeTable {
  Index num_nodes = 0;
  FieldTable fields = {};
  std::string note = {};  ///< what was understood
};

/// Reads SourceOptions::node_table, a text with a header and a column of keys, which are the names of the
/// nodes of the source. Fields are "features" [columns], "labels", and the masks, float64. Labels that are
/// names, and one-hot columns, have their values sorted. Collective; throws InputError, the same on every
/// rank.
NodeTable read_node_table(const FileSource& source, const SourceOptions& options);

}  // namespace sar::formats
