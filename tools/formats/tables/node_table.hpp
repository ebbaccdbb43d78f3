// SPDX-License-Identifier: MIT

/// Data of nodes in tables beside a graph file: texts with a row for each node, and lists in JSON.
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

/// Adds what SourceOptions::node_table and node_features say of the nodes of a homogeneous graph, whose names
/// their keys are. Collective; throws InputError, the same on every rank, as read_node_table and
/// read_json_features, and for data that the source has already.
void add_node_tables(FileSource& source, const SourceOptions& options);

/// Reads SourceOptions::node_features: an object with a list of numbers for each node of the source. Lists
/// of values have equal lengths, and become rows of these. Lists of indices name the features that a node
/// has, which are 1, and all others 0; the largest index says how many there are. With
/// FeatureLists::automatic, lists with a number that is not whole are values, and lists of whole numbers of
/// different lengths are indices; anything else may be both and is refused. The field "features" is sparse.
/// Rank 0 reads the file. Collective; throws InputError, the same on every rank.
NodeTable read_json_features(const FileSource& source, const SourceOptions& options);

}  // namespace sar::formats
