/// Looking up rows of an array whose slices are spread over the workers.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/io/data_array.hpp>

#include <cstddef>
#include <cstring>
#include <span>

namespace sar {

/// Row i of the array lies on rank book.owner(i), as row i - book.begin(rank) of `mine`. Writes the rows that
/// this rank wants, in that order (repetitions allowed), to `out`. All ranks' requests are served in rounds
/// of about 4 MiB a rank, whatever their number. Collective. Throws InputError, the same on every rank, when
/// a row does not exist.
void fetch_row_bytes(const Communicator& comm, const PartitionBook& book, const std::byte* mine,
                     Index row_bytes, std::span<const Index> rows, std::byte* out);

/// One trivially copyable value per row. Collective.
template <class T>
Array<T> fetch_values(const Communicator& comm, const PartitionBook& book, std::span<const T> mine,
                      std::span<const Index> rows) {
  Array<T> out(rows.size());
  fetch_row_bytes(comm, book, reinterpret_cast<const std::byte*>(mine.data()), sizeof(T), rows,
                  reinterpret_cast<std::byte*>(out.data()));
  return out;
}

/// Rows of a DataArray of the same type and row shape on every rank. Collective.
DataArray fetch_rows(const Communicator& comm, const PartitionBook& book, const DataArray& mine,
                     std::span<const Index> rows);

}  // namespace sar
