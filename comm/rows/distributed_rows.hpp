/// Rows of an array that is spread over the ranks, fetched by their numbers.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>

#include <cstddef>
#include <cstring>
#include <span>

namespace sar::inline SAR_PRECISION {

/// Rank book.owner(i) stores row i of the array, as row i - book.begin(rank) of `mine`. Writes the rows that
/// this rank wants to `out`, in the order of `rows`, where a row may occur again. A rank asks for about
/// 4 MiB of rows at a time. Collective. Throws InputError, the same on every rank, when a row does not exist.
void fetch_row_bytes(const Communicator& comm, const PartitionBook& book, const std::byte* mine,
                     Index row_bytes, std::span<const Index> rows, std::byte* out);

/// The same for one trivially copyable value in each row. Collective.
template <class T>
Array<T> fetch_values(const Communicator& comm, const PartitionBook& book, std::span<const T> mine,
                      std::span<const Index> rows) {
  Array<T> out;
  comm.agree([&] {
    out.resize(rows.size());
    fetch_row_bytes(comm, book, reinterpret_cast<const std::byte*>(mine.data()), sizeof(T), rows,
                    reinterpret_cast<std::byte*>(out.data()));
  });
  return out;
}

}  // namespace sar
