// SPDX-License-Identifier: MIT

/// Renumbers ids: by their rank in the sorted order, or by a table that is distributed over the ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Returns the position of each id among the sorted ids of all ranks. Equal ids are ordered by
/// rank, then by their position in a rank's list. Each rank may have up to 2^31 - 1 ids. A rank sorts at
/// most about twice the mean number of ids, whatever their values. Memory: about 40 bytes per id.
Array<Index> numbers_of_ids(const Communicator& comm, std::span<const Index> ids);

/// Collective. Replaces each id by table[id]. Rank slices.owner(i) stores table[i] as element i -
/// slices.begin(rank) of `mine`. All ids must exist. Each rank requests every distinct id once. Memory: at
/// most about 32 bytes per distinct id, plus some MB.
void replace_ids(const Communicator& comm, const PartitionBook& slices, std::span<const Index> mine,
                 std::span<Index> ids);

}}  // namespace sar
