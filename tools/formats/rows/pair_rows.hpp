// SPDX-License-Identifier: MIT

/// Files of pairs of nodes.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>

#include <string>

namespace sar::formats {

/// What is in a file of pairs.
struct PairFile {
  Index columns = 2;  ///< 3: the third one is the number of an edge type
  std::string
      names;  ///< file with the name of each node, in whose place the pairs have names; empty: numbers
  Index block_bytes = 0;  ///< of text that a rank reads at a time
};

/// The rows of the file that this rank has read, row by row.
struct PairRows {
  Array<Index> numbers;  ///< [rows, columns]: of nodes as in the file, or of the lines of their names from 0
  Array<Index> rows;     ///< which row of the file each is, from 0
};

/// Whether the file is read as an array.
bool is_array_file(const std::string& path);

/// Collective. Reads a .npy array [pairs, columns], or text with so many fields in each line that is neither
/// empty nor a comment, separated by blanks, tabs, commas or semicolons. Each rank gets a part of the rows.
/// Throws InputError, the same on every rank, with the row or line, for a name that no node has, a field that
/// is no number from 0, and another number of columns.
PairRows read_pair_rows(const Communicator& comm, const std::string& path, const PairFile& file);

}  // namespace sar::formats
