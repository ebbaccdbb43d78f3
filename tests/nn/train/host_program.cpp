// SPDX-License-Identifier: MIT

/// A host that owns MPI, at the thread level that its first argument names, trains on half of its ranks;
/// where the level allows it, from a thread that is not the one that initialized MPI.
#define DOCTEST_CONFIG_IMPLEMENT
#include "host_training.hpp"

#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <string_view>
#include <thread>

namespace {

/// The last loss on `comm` and on this rank alone agree.
bool trains(MPI_Comm comm) {
  const double one = sar::test::HostTraining(sar::Communicator::self(), 1).steps(4).back();
  const double all = sar::test::HostTraining(sar::Communicator(comm), 1).steps(4).back();
  return std::abs(all - one) <= 1e-4 * std::abs(one);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "funneled";
  const int wanted = name == "multiple"     ? MPI_THREAD_MULTIPLE
                     : name == "serialized" ? MPI_THREAD_SERIALIZED
                                            : MPI_THREAD_FUNNELED;
  int level = 0;
  MPI_Init_thread(&argc, &argv, wanted, &level);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Errhandler before = MPI_ERRHANDLER_NULL, after = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2 == 0 ? 0 : MPI_UNDEFINED, rank, &half);

  bool good = level >= wanted;
  if (half != MPI_COMM_NULL) {
    good = good && trains(half);
    if (wanted > MPI_THREAD_FUNNELED) std::thread([&] { good = good && trains(half); }).join();
    MPI_Comm_free(&half);
  }
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
  good = good && before == after;
  MPI_Errhandler_free(&before);
  MPI_Errhandler_free(&after);
  MPI_Finalize();
  if (!good) std::fprintf(stderr, "failed: level %d of %d wanted\n", level, wanted);
  return good ? 0 : 1;
}
