// SPDX-License-Identifier: MIT

/// Reads rows of a distributed array by their row numbers.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/memory/memory.hpp>

#include <cstddef>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Writes the rows `rows` of the array to `out`, in the order of the list (repetitions
/// allowed). Rank book.owner(i) stores row i as row i - book.begin(rank) of `mine`. Each rank requests
/// about 4 MiB of rows at a time. Throws InputError, the same on every rank, if a row does not exist.
void fetch_row_bytes(const Communicator& comm, const PartitionBook& book, const std::byte* mine,
                     Index row_bytes, std::span<const Index> rows, std::byte* out);

/// Collective. Returns one trivially copyable value per listed row.
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

// Reads rows of a DataArray that is distributed over the ranks.

/// Collective. Returns rows rows[0], rows[1], ... of the whole array. Rank p stores the rows of the book's
/// range p as `mine`, with the same type and row shape on every rank. Throws InputError, the same on every
/// rank, if a row does not exist.
DataArray fetch_rows(const Communicator& comm, const PartitionBook& book, const DataArray& mine,
                     std::span<const Index> rows);
}}  // namespace sar
