// SPDX-License-Identifier: MIT

/// The last rank makes a call less than the others and ends the program: they throw instead of waiting. With
/// an argument, MPI is a host's, which finalizes it itself.
#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/error.hpp>

#include <cstdio>
#include <optional>

namespace {

int calls(int fewer) {
  const sar::Communicator comm = sar::Communicator::world();
  try {
    for (int i = comm.rank() == comm.size() - 1 ? fewer : 0; i < 3; ++i) comm.barrier();
  } catch (const sar::CommunicationError& error) {
    std::printf("rank %d: %s\n", comm.rank(), error.what());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<sar::Environment> environment;
  int level = 0;
  if (argc > 1)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  else
    environment.emplace(argc, argv);
  const int code = calls(1);
  if (argc > 1) MPI_Finalize();
  return code;
}
