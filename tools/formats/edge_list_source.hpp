// SPDX-License-Identifier: MIT

/// Edge lists as sources of graphs.
#pragma once

#include "file_source.hpp"
#include "source_options.hpp"

#include <memory>
#include <string>

namespace sar::formats {

/// A text with an edge a line; comments begin with # or %. Edge e is the e-th line that is no comment, header
/// or empty line. guess_edge_list_format says which columns are the two nodes and which become edge data,
/// such as "weight", "labels" and "features" [columns]; float64.
///
/// With SourceOptions::relations, several texts by type, "author:writes:paper". Then nodes are numbered from
/// 0 within their types (NodeIds::dense), and a type has as many as the largest number in its columns of all
/// files says, or more if there are more rows of its data: SourceOptions::node_data by type and name,
/// "paper/features".
///
/// Reads everything; `path` is not used with relations. Collective; throws InputError, the same on every
/// rank.
std::unique_ptr<GraphSource> open_edge_lists(const Communicator& comm, const std::string& path,
                                             const SourceOptions& options);

}  // namespace sar::formats
