#include <sar/comm/known_calls.hpp>

namespace sar::inline SAR_PRECISION {
namespace {

thread_local MPI_Comm known_on = MPI_COMM_NULL;

}  // namespace

KnownCalls::KnownCalls(const Communicator& comm, bool known) : outer_(known_on) {
  if (known) known_on = comm.handle();
}
KnownCalls::~KnownCalls() {
  known_on = outer_;
}

bool KnownCalls::of(const Communicator& comm) noexcept {
  return known_on == comm.handle();
}

}  // namespace sar
