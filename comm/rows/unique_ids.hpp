/// Ids that must not occur twice, in lists that are spread over the workers.
#pragma once

#include <sar/comm/communicator.hpp>

#include <span>
#include <string>

namespace sar {

/// Throws InputError, the same on every rank, when an id occurs twice among those of all ranks: "<place>: 7
/// occurs twice, ...". The ids are not negative. Memory: about 1 / ranks of a bit for each number up to the
/// largest id, or, where ids are sparse, of 8 bytes for each id. Collective.
void require_unique_ids(const Communicator& comm, std::span<const Index> ids, const std::string& place);

}  // namespace sar
