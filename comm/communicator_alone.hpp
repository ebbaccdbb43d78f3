// SPDX-License-Identifier: MIT

/// A communicator of one rank in programs with and without MPI_COMM_SELF.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Returns a communicator of this rank alone, also where MPI_COMM_SELF does not exist.
Communicator communicator_alone(const Communicator& comm);

}}  // namespace sar
