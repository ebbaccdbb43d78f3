/// Ids that shall name every node or edge once.
#pragma once

#include <sar/comm/communicator.hpp>

#include <span>
#include <string>

namespace sar {

/// Throws InputError beginning with `what`, the same on every rank, unless the ids of all ranks together are
/// 0 .. n - 1, each once. Memory: about n / ranks bits and a few MB. Collective.
void require_permutation(const Communicator& comm, std::span<const Index> ids, Index n,
                         const std::string& what);

}  // namespace sar
