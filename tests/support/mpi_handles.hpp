/// Handles of MPI that the program made and has not given back. The calls that make or free one are taken
/// from MPI here (its profiling interface), counted, and passed on; what MPI does inside itself does not
/// count.
#pragma once

#include <string>

namespace sar::test {

struct MpiHandles {
  int communicators = 0;
  int requests = 0;
  bool operator==(const MpiHandles&) const = default;
};

/// Those open now, on this rank.
MpiHandles open_mpi_handles() noexcept;

/// "2 communicators, 1 request"
std::string describe(const MpiHandles& handles);

}  // namespace sar::test
