/// Renumbering: ids in their order, and a table that is spread over the ranks replaces the ids of a long
/// list.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// The number of each id among those of all ranks, 0, 1, ... in ascending order. Ids that are equal are in
/// the order of the ranks, and of a rank's list. They are not negative, and no rank has 2^31 or more. Memory:
/// 32 bytes for each id; each rank sorts those in its share of the range of the ids. Collective.
Array<Index> numbers_of_ids(const Communicator& comm, std::span<const Index> ids);

/// Replaces each id by table[id]. Rank slices.owner(i) stores table[i], as element i - slices.begin(rank) of
/// `mine`. The ids exist. A rank asks for each distinct id once. It needs at most about 32 bytes for each of
/// these, and some MB. Collective.
void replace_ids(const Communicator& comm, const PartitionBook& slices, std::span<const Index> mine,
                 std::span<Index> ids);

}  // namespace sar
