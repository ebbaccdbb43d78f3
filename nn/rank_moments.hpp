/// Column statistics of the rows of all ranks. For implementation files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/column_moments.hpp>

namespace sar::inline SAR_PRECISION {

/// The moments of all ranks' rows together, merged in rank order: the same bits on every rank. Each rank
/// merges its share of the columns and tells the others, so that a rank holds 4 numbers a column and one a
/// rank. Collective.
ColumnMoments merge_over_ranks(const Communicator& comm, const ColumnMoments& mine);

}  // namespace sar
