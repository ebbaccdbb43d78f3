// SPDX-License-Identifier: MIT

/// Data of nodes in tables beside a graph file: texts with a row for each node, and lists in JSON.
#pragma once

#include "formats/file_source.hpp"
#include "formats/source_options.hpp"

namespace sar::formats {

/// Adds what SourceOptions::node_table says of the nodes, a text with a header and a column of keys, which
/// are the names of the nodes of the source. Fields are "features" [columns], "labels", and the masks,
/// float64. Labels that are names, and one-hot columns, have their values sorted. Collective; throws
/// InputError, the same on every rank.
void add_node_table(FileSource& source, const SourceOptions& options);

/// Adds what SourceOptions::node_table and node_features say of the nodes of a homogeneous graph, whose names
/// their keys are. Collective; throws InputError, the same on every rank, as add_node_table and
/// add_json_features, and for data that the source has already.
void add_node_tables(FileSource& source, const SourceOptions& options);

/// Adds what SourceOptions::node_features says: an object with a list of numbers for each node of the source.
/// Lists of values have equal lengths, and become rows of these. Lists of indices name the features that a
/// node has, which are 1, and all others 0; the largest index says how many there are. With
/// FeatureLists::automatic, lists with a number that is not whole are values, and lists of whole numbers of
/// different lengths are indices; anything else may be both and is refused. The field "features" is sparse.
/// Rank 0 reads the file. Collective; throws InputError, the same on every rank.
void add_json_features(FileSource& source, const SourceOptions& options);

}  // namespace sar::formats
