// SPDX-License-Identifier: MIT

/// All halo rows at once, exactly: for numbers of nodes, which a graph fetches once and keeps.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/halo/halo_plan.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Fetches all halo rows of `owned` at once: [halo rows, ...].
[[nodiscard]] Tensor fetch_halo(const Communicator& comm, const Tensor& owned, HaloRounds rounds);

/// Collective. Fetches the integer of each halo row: [halo rows]. `owned` has one for each row of this rank.
[[nodiscard]] Array<Index> fetch_halo(const Communicator& comm, std::span<const Index> owned,
                                      const std::vector<HaloRound>& rounds);

}}  // namespace sar
