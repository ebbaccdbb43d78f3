/// Ids that must not occur twice, in lists that are spread over the ranks.
#pragma once

#include <sar/comm/communicator.hpp>

#include <span>
#include <string>

namespace sar::inline SAR_PRECISION {

/// Throws InputError, the same on every rank, when an id occurs twice among those of all ranks: "<place>: 7
/// occurs twice, ...". The ids are not negative. Memory: 1 / ranks of a bit for each number up to the largest
/// id, or 8 bytes / ranks for each id of all ranks where ids are sparse. Collective.
void require_unique_ids(const Communicator& comm, std::span<const Index> ids, const std::string& place);

/// Throws InputError beginning with `place`, the same on every rank, unless the ids of all ranks together are
/// 0 .. n - 1, each once. Memory: n / ranks bits and a few MB. Collective.
void require_permutation(const Communicator& comm, std::span<const Index> ids, Index n,
                         const std::string& place);

}  // namespace sar
