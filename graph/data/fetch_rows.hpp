/// Rows of a DataArray that is spread over the ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/io/data_array.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// Row rows[i] of the whole array is row i of the result. Rank p stores the rows that book gives it as
/// `mine`, of the same type and row shape on every rank. Collective. Throws InputError, the same on every
/// rank, when a row does not exist.
DataArray fetch_rows(const Communicator& comm, const PartitionBook& book, const DataArray& mine,
                     std::span<const Index> rows);

}  // namespace sar
