/// Rows that come in any order of ranks, kept as slices.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/io/data_array.hpp>

#include <cstddef>
#include <span>

namespace sar::formats {

/// This rank has rows first, first + 1, ... of an array, of row_bytes each: they go to their owners, row i
/// to element i - book.begin(rank) of `mine` there. Collective; any number of rows. The rows exist.
void send_rows(const Communicator& comm, const PartitionBook& book, Index first,
               std::span<const std::byte> rows, Index row_bytes, std::byte* mine);

}  // namespace sar::formats
