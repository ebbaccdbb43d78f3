// SPDX-License-Identifier: MIT
#include <sar/comm/communicator_alone.hpp>
#include <sar/comm/mpi_objects.hpp>

namespace sar { inline namespace SAR_PRECISION {

Communicator communicator_alone(const Communicator& comm) {
  if (!is_of_session(comm.handle())) return Communicator::self();
  return comm.agree([&] {
    comm.synchronize("communicator_alone");
    OwnedComm alone;
    check_mpi(MPI_Comm_split(comm.handle(), comm.rank(), 0, &alone.comm), "MPI_Comm_split");
    return Communicator(alone.comm);
  });
}

}}  // namespace sar
