// SPDX-License-Identifier: MIT

/// Sums of ExactSums over the ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/numbers.hpp>

#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Returns each sum over all ranks. 16 bytes for each sum and rank travel to every rank.
[[nodiscard]] std::vector<ExactSum> exact_sum_over_ranks(const Communicator& comm,
                                                         std::span<const ExactSum> mine);

}}  // namespace sar
