/// Column statistics of the rows of all ranks. For implementation files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/column_moments.hpp>

namespace sar::inline SAR_PRECISION {

/// The moments of all ranks' rows together, merged in rank order: the same bits on every rank. Collective.
ColumnMoments merge_over_ranks(const Communicator& comm, const ColumnMoments& mine);

}  // namespace sar
