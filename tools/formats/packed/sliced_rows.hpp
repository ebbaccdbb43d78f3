// SPDX-License-Identifier: MIT

/// Sends rows that are read in any order to the ranks that own them.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>

#include <cstddef>
#include <span>

namespace sar::formats {

/// Collective. This rank has the rows first, first + 1, ... of an array, of row_bytes each. Row i goes to
/// its owner, to row i - book.begin(rank) of `mine` there. A rank may give any number of rows, all below
/// book.num_nodes().
void send_rows(const Communicator& comm, const PartitionBook& book, Index first,
               std::span<const std::byte> rows, Index row_bytes, std::byte* mine);

}  // namespace sar::formats
