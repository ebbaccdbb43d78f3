// SPDX-License-Identifier: MIT

/// Features of nodes as lists in JSON: {"3159": [308, 1603, 1269], ...}.
#pragma once

#include "formats/file_source.hpp"
#include "formats/source_options.hpp"
#include "node_table.hpp"

namespace sar::formats {

/// Reads SourceOptions::node_features: an object with a list of numbers for each node of the source. Lists
/// of values have equal lengths, and become rows of these. Lists of indices name the features that a node
/// has, which are 1, and all others 0; the largest index says how many there are. With
/// FeatureLists::automatic, lists with a number that is not whole are values, and lists of whole numbers of
/// different lengths are indices; anything else may be both and is refused. The field "features" is sparse.
/// Rank 0 reads the file. Collective; throws InputError, the same on every rank.
NodeTable read_json_features(const FileSource& source, const SourceOptions& options);

}  // namespace sar::formats
