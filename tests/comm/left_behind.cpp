// SPDX-License-Identifier: MIT

/// A rank fails while it has a distributed tensor, whose window is left behind until the program ends: the
/// file of SAR_TRACE is written all the same.
#include <sar/comm/environment.hpp>
#include <sar/comm/rows/distributed_tensor.hpp>
#include <sar/core/error.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace {

/// The rank, or -1 where nothing has failed.
int fail_with_tensor() {
  const sar::Communicator comm = sar::Communicator::world();
  try {
    comm.agree([&] {
      const sar::DistributedTensor<> rows(comm, sar::PartitionBook::even(4, comm.size()), sar::Shape{4, 2});
      sar::require<sar::InputError>(comm.rank() != 1, "this rank fails");
      comm.barrier();
    });
  } catch (const sar::InputError&) {
    return comm.rank();
  }
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  // the ranks are children of one process
  const std::string name = "sar_left_behind_" + std::to_string(getppid()) + ".json";
  const std::filesystem::path file = std::filesystem::temp_directory_path() / name;
  setenv("SAR_TRACE", file.c_str(), 1);
  std::optional<sar::Environment> environment(std::in_place, argc, argv);
  const int rank = fail_with_tensor();
  environment.reset();
  if (rank == 0 && std::filesystem::remove(file)) return 0;
  if (rank > 0) return 0;
  std::fprintf(stderr, "rank %d: there is no file %s\n", rank, file.c_str());
  return 1;
}
