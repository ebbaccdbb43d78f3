/// Renumbering: a table that is spread over the ranks replaces the ids of a long list.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/index_set.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// Replaces each id by table[id]. Rank slices.owner(i) stores table[i], as element i - slices.begin(rank) of
/// `mine`. The ids exist. A rank asks for each distinct id once. It needs 16 bytes for each of these, and
/// slices.num_nodes() / 7 bytes. Collective.
void replace_ids(const Communicator& comm, const PartitionBook& slices, std::span<const Index> mine,
                 std::span<Index> ids);

}  // namespace sar
