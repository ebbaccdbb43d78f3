// SPDX-License-Identifier: MIT

/// Node data from tables beside a graph file.
#pragma once

#include "formats/file_source.hpp"
#include "formats/source_options.hpp"

namespace sar::formats {

/// Adds what SourceOptions::node_table and node_features say of the nodes of a homogeneous graph, whose names
/// their keys are. Collective; throws InputError, the same on every rank, as read_node_table and
/// read_json_features, and for data that the source has already.
void add_node_tables(FileSource& source, const SourceOptions& options);

}  // namespace sar::formats
