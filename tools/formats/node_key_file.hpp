// SPDX-License-Identifier: MIT

/// A file that says which id each row of the node data has.
#pragma once

#include "source_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/threads/parallel.hpp>

#include <span>
#include <string>
#include <string_view>

namespace sar::formats {

/// Reads a text with an id a line, or a table: its header calls a column id, node, key, name or x_id, or it
/// is a .csv or .tsv file without a header and has the ids in the first column. Row i, which is neither a
/// comment nor empty, has the id of node i. `take` gets the ids of consecutive rows of this rank and the
/// number of the first; every rank calls it the same number of times. Returns the number of rows. Collective;
/// throws InputError, the same on every rank.
Index read_node_keys(const Communicator& comm, const std::string& path, const SourceOptions& options,
                     FunctionRef<void(std::span<const std::string_view> ids, Index first)> take);

}  // namespace sar::formats
