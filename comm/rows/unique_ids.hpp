// SPDX-License-Identifier: MIT

/// Checks that distributed ids are unique.
#pragma once

#include <sar/comm/communicator.hpp>

#include <span>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Throws InputError, the same on every rank, if an id occurs twice among the ids of all ranks:
/// "<place>: 7 occurs twice, ...". Ids must not be negative. Memory per rank: 1 / ranks bits per number up
/// to the largest id or, for sparse ids, 8 / ranks bytes per id of all ranks.
void require_unique_ids(const Communicator& comm, std::span<const Index> ids, const std::string& place);

/// Collective. Throws InputError with a message that begins with `place`, the same on every rank, unless
/// the ids of all ranks together are 0 to n - 1, each once. Memory: n / ranks bits and a few MB.
void require_permutation(const Communicator& comm, std::span<const Index> ids, Index n,
                         const std::string& place);

}}  // namespace sar
