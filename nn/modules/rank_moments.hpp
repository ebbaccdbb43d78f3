// SPDX-License-Identifier: MIT

/// Column statistics over the rows of all ranks. For implementation files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/rows/column_moments.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Returns the moments of the rows of all ranks, merged in rank order, with the same bits on
/// every rank. Each rank merges its share of the columns and sends the result to the other ranks, so that a
/// rank holds 4 values per column and one per rank.
ColumnMoments merge_over_ranks(const Communicator& comm, const ColumnMoments& mine);

}}  // namespace sar
