// SPDX-License-Identifier: MIT

/// MPI handles that the program has made and not freed. The calls that make or free one are intercepted
/// (MPI's profiling interface), counted and passed on. What MPI does inside does not count.
#pragma once

#include <string>

namespace sar::test {

struct MpiHandles {
  int communicators = 0;
  int requests = 0;
  int windows = 0;
  int types = 0;
  int error_handlers = 0;
  bool operator==(const MpiHandles&) const = default;
};

/// The open handles of this rank.
MpiHandles open_mpi_handles() noexcept;

/// How often this rank has reached a synchronization point (status.hpp), an MPI_Iallreduce.
int num_synchronizations() noexcept;

/// "2 communicators, 1 requests, 0 windows, 0 types, 0 error handlers"
std::string describe(const MpiHandles& handles);

}  // namespace sar::test
