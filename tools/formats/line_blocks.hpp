// SPDX-License-Identifier: MIT

/// A text file read by all ranks together, in blocks of whole lines.
#pragma once

#include "formats/packed/text_file.hpp"
#include "text.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/threads/parallel.hpp>

#include <string>
#include <string_view>

namespace sar::formats {

/// Where the lines begin that are to be read.
struct TextPosition {
  Index byte = 0;  ///< of the text, unpacked
  Index line = 0;  ///< lines in front of it
};

/// Where the lines of a block stand in the whole text.
struct BlockPlace {
  Index first_line = 0, first_row = 0;
  Index rows_so_far = 0;  ///< that all ranks have found
};

/// Collective. Reads a text from `begin` on: `parse` gets a block of whole lines and tells how many lines
/// and rows it found (local); then `placed` gets the place of this block (it may be collective, every rank
/// calls it the same number of times; it may throw the same on all ranks where there are too many rows).
/// Rows are numbered in the order of the text, whatever the number of ranks.
///
/// A plain file is read by each rank for itself, in blocks of about `block_bytes`; one that is packed is
/// unpacked by rank 0, which sends blocks to the ranks in turn and holds about 4 `block_bytes` at a time,
/// whatever the number of ranks. Of Parquet files, each rank reads groups of rows for itself. Returns the
/// counts of the whole text. Of the lines for which parse throws a LineError, the first of the text is
/// reported on all ranks (of Parquet files, the first of those that are read at the same time), as
/// NotAnInteger if it is one; other exceptions as by Communicator::agree.
TextCounts read_lines(const Communicator& comm, const std::string& path, const TextPosition& begin,
                      Index block_bytes, FunctionRef<TextCounts(std::string_view text)> parse,
                      FunctionRef<void(const BlockPlace&)> placed);

}  // namespace sar::formats
