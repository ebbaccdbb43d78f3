// SPDX-License-Identifier: MIT

/// Reads rows of a DataArray that is distributed over the ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Returns rows rows[0], rows[1], ... of the whole array. Rank p stores the rows of the book's
/// range p as `mine`, with the same type and row shape on every rank. Throws InputError, the same on every
/// rank, if a row does not exist.
DataArray fetch_rows(const Communicator& comm, const PartitionBook& book, const DataArray& mine,
                     std::span<const Index> rows);

}}  // namespace sar
